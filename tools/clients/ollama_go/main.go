// Ollama's own client in Go (github.com/ollama/ollama/api, which its program `ollama` uses too) against the server at
// the address that is the argument.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"
)

const model = "storyteller"

func check(holds bool, told ...any) {
	if !holds {
		log.Panic(told...)
	}
}

func must[T any](value T, err error) T {
	check(err == nil, err)
	return value
}

func chat(client *api.Client, request api.ChatRequest) (string, []api.ToolCall, error) {
	var text strings.Builder
	var calls []api.ToolCall
	request.Model = model
	err := client.Chat(context.Background(), &request, func(part api.ChatResponse) error {
		text.WriteString(part.Message.Content)
		calls = append(calls, part.Message.ToolCalls...)
		return nil
	})
	return text.String(), calls, err
}

func tryModels(client *api.Client) {
	ctx := context.Background()
	check(client.Heartbeat(ctx) == nil)
	check(must(client.Version(ctx)) != "")
	listed := must(client.List(ctx)).Models[0]
	check(listed.Name == model && len(listed.Digest) == 64, listed)
	running := must(client.ListRunning(ctx)).Models[0]
	check(running.Digest == listed.Digest && running.ContextLength == 1024, running)
	for _, request := range []api.ShowRequest{{Model: model}, {Name: model}} { // `ollama show` sends the second
		shown := must(client.Show(ctx, &request))
		check(slices.Contains(shown.Capabilities, "tools") && shown.ModelInfo["general.architecture"] == "llama", shown)
	}
	_, err := client.Show(ctx, &api.ShowRequest{Name: "none"})
	var status api.StatusError
	check(errors.As(err, &status) && status.StatusCode == http.StatusNotFound, err)
}

func tryAnswers(client *api.Client) {
	ctx := context.Background()
	messages := []api.Message{{Role: "user", Content: "Is it warm in Rome?"}}
	options := map[string]any{"num_predict": 8, "seed": -1, "top_k": -1, "temperature": 0}
	streamed, _, err := chat(client, api.ChatRequest{Messages: messages, Options: options})
	check(err == nil && streamed != "", err)
	no := false
	whole, _, err := chat(client, api.ChatRequest{Messages: messages, Options: options, Stream: &no})
	check(err == nil && whole == streamed, err, whole, streamed)
	text := ""
	generate := func(part api.GenerateResponse) error { text += part.Response; return nil }
	check(client.Generate(ctx, &api.GenerateRequest{Model: model, Prompt: "The fox", Options: options}, generate) == nil)
	check(text != "")
	schema := json.RawMessage(`{"type": "object", "properties": {"place": {"enum": ["Rome", "Paris"]}}, "required": ["place"], "additionalProperties": false}`)
	form, _, err := chat(client, api.ChatRequest{Messages: messages, Format: schema})
	check(err == nil && (form == `{"place":"Rome"}` || form == `{"place":"Paris"}`), err, form)
	arguments := api.NewToolCallFunctionArguments()
	arguments.Set("place", "Rome")
	history := append(messages, api.Message{Role: "assistant", ToolCalls: []api.ToolCall{{Function: api.ToolCallFunction{Name: "weather", Arguments: arguments}}}},
		api.Message{Role: "tool", Content: "It is warm.", ToolName: "weather"})
	tools := api.Tools{{Type: "function", Function: api.ToolFunction{Name: "weather", Description: "The weather of a place."}}}
	_, _, err = chat(client, api.ChatRequest{Messages: history, Tools: tools, Options: options})
	check(err == nil, err)
	embedded := must(client.Embed(ctx, &api.EmbedRequest{Model: model, Input: []string{}}))
	check(len(embedded.Embeddings) == 0, embedded)
	_, _, err = chat(client, api.ChatRequest{Messages: []api.Message{{Role: "user", Content: strings.Repeat("fox ", 3000)}}})
	check(err != nil && strings.Contains(err.Error(), "maximum context length is 1024 tokens"), err)
}

func main() {
	client := api.NewClient(must(url.Parse(os.Args[1])), http.DefaultClient)
	tryModels(client)
	tryAnswers(client)
}
