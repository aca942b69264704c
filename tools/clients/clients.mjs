// openai, Anthropic's SDK, ai and ollama of npm against the server at the address that is the second argument. The
// first argument is the folder that has them.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, url] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { default: OpenAI } = await load("openai");
const { default: Anthropic } = await load("@anthropic-ai/sdk");
const { generateText, streamText, jsonSchema, tool, Output } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const { Ollama } = await load("ollama");

const model = "storyteller";
const most = 200; // tokens: enough for blanks that a grammar lets this model write between arguments
const question = "Is it warm in Rome?";
const messages = [{ role: "user", content: question }];
const places = ["Rome", "Paris"];
const schema = { type: "object", properties: { place: { type: "string", enum: places } }, required: ["place"], additionalProperties: false };

async function tryOpenAI() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const whole = await client.chat.completions.create({ model, messages, max_tokens: 8 });
  let text = "";
  for await (const chunk of await client.chat.completions.create({ model, messages, max_tokens: 8, stream: true }))
    text += chunk.choices[0]?.delta?.content ?? "";
  assert.equal(text, whole.choices[0].message.content);
  const tools = [{ type: "function", function: { name: "weather", parameters: schema } }];
  const tool_choice = { type: "function", function: { name: "weather" } };
  const stream = client.chat.completions.stream({ model, messages, max_tokens: most, tools, tool_choice });
  const [call] = (await stream.finalMessage()).tool_calls;
  assert.ok(places.includes(JSON.parse(call.function.arguments).place));
  const response = await client.responses.create({ model, input: question, max_output_tokens: 6 });
  assert.ok(response.output_text);
  await assert.rejects(client.chat.completions.create({ model: "none", messages }), OpenAI.NotFoundError);
}

async function tryAnthropic() {
  const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
  const { data } = await client.models.list();
  assert.deepEqual(data.map(({ id, type }) => [id, type]), [[model, "model"]]);
  const whole = await client.messages.create({ model, messages, max_tokens: 8 });
  assert.equal(await client.messages.stream({ model, messages, max_tokens: 8 }).finalText(), whole.content[0].text);
  const tools = [{ name: "weather", input_schema: schema }];
  const called = await client.messages.stream({ model, messages, max_tokens: most, tools, tool_choice: { type: "tool", name: "weather" } }).finalMessage();
  assert.ok(places.includes(called.content[0].input.place));
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: called.content[0].id, content: "It is warm." }] };
  const history = [...messages, { role: "assistant", content: called.content }, result];
  assert.equal((await client.messages.create({ model, messages: history, tools, max_tokens: 8 })).stop_reason, "max_tokens");
  const begun = [...messages, { role: "assistant", content: "Once upon a" }];
  assert.ok((await client.messages.create({ model, messages: begun, max_tokens: 8 })).content[0].text);
  assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 3);
  const long = [{ role: "user", content: "fox ".repeat(3000) }];
  await assert.rejects(client.messages.create({ model, messages: long, max_tokens: 8, stream: true }),
    (error) => error instanceof Anthropic.BadRequestError && /prompt is too long: \d+ tokens > 1023 maximum/.test(error.message));
}

async function tryAi() {
  const options = { model: createOpenAICompatible({ name: "doppler", baseURL: `${url}/v1`, supportsStructuredOutputs: true })(model),
    prompt: question, maxOutputTokens: most, maxRetries: 0 };
  const whole = await generateText(options);
  const streamed = streamText(options);
  let text = "";
  for await (const piece of streamed.textStream) text += piece;
  assert.equal(text, whole.text);
  assert.equal(whole.usage.outputTokens, most);
  const asked = [];
  const weather = tool({ description: "The weather of a place.", inputSchema: jsonSchema(schema),
    execute: async (input) => { asked.push(input); return "It is warm."; } });
  const called = { ...options, tools: { weather }, toolChoice: { type: "tool", toolName: "weather" } };
  const { toolCalls } = await generateText(called);
  assert.ok(places.includes(toolCalls[0].input.place));
  await streamText(called).consumeStream();
  assert.deepEqual(asked.map((input) => places.includes(input.place)), [true, true]);
  const { output } = await generateText({ ...options, output: Output.object({ schema: jsonSchema(schema) }) });
  assert.ok(places.includes(output.place));
}

async function tryOllama() {
  const client = new Ollama({ host: url });
  const [, minor, patch] = (await client.version()).version.split(".").map(Number);
  assert.ok(minor > 6 || patch >= 4);
  const { models } = await client.list();
  assert.deepEqual(models.map((listed) => [listed.name, listed.digest.length]), [[model, 64]]);
  assert.equal((await client.ps()).models[0].digest, models[0].digest);
  const shown = await client.show({ model });
  assert.deepEqual(shown.capabilities, ["completion", "tools"]);
  assert.equal(shown.model_info["general.architecture"], "llama");
  const options = { num_predict: 8, seed: -1, top_k: -1, temperature: 0 };
  const whole = await client.chat({ model, messages, options });
  let text = "";
  for await (const part of await client.chat({ model, messages, options, stream: true })) text += part.message.content;
  assert.equal(text, whole.message.content);
  assert.ok((await client.generate({ model, prompt: question, options })).response);
  const begun = [...messages, { role: "assistant", content: "Once upon a" }];
  assert.ok((await client.chat({ model, messages: begun, options })).message.content);
  assert.deepEqual((await client.embed({ model, input: [] })).embeddings, []);
  const { message } = await client.chat({ model, messages, format: schema, options: { num_predict: most } });
  assert.ok(places.includes(JSON.parse(message.content).place));
  await assert.rejects(client.chat({ model: "none", messages }), { status_code: 404 });
  await assert.rejects(client.chat({ model, messages: [{ role: "user", content: "fox ".repeat(3000) }], stream: true }),
    /maximum context length is 1024 tokens/);
}

await tryOpenAI();
await tryAnthropic();
await tryAi();
await tryOllama();
