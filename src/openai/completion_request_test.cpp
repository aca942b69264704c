// Bodies of OpenAI's API: what each field becomes, and which sentence refuses it.
#include "openai/completion_request.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "openai/completion_body.h"
#include "openai/formats/formats.h"
#include "openai/generate_fields.h"
#include "openai/image_parts.h"

namespace doppler::openai {
namespace {

Result<CompletionRequest> read(Endpoint endpoint, const std::string& body) {
  const auto json = parse_json(body, "body");
  EXPECT_TRUE(json) << body;
  return read_completion(endpoint, *json, {});
}

// The fields of a chat's body beside its messages.
Result<CompletionRequest> chat(const std::string& fields) {
  return read(Endpoint::kChatCompletions, R"({"messages": [{"role": "user", "content": "hi"}])" +
                                              (fields.empty() ? "" : ", " + fields) + "}");
}

std::string chat_error(const std::string& fields) {
  const auto request = chat(fields);
  return request ? "no error" : request.error().sentence();
}

std::string message_error(const std::string& messages) {
  const auto request = read(Endpoint::kChatCompletions, R"({"messages": )" + messages + "}");
  return request ? "no error" : request.error().sentence();
}

TEST(CompletionRequest, EachFieldIsTaken) {
  const auto request = chat(
      R"("max_completion_tokens": 7, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "min_p": 0.125, "seed": -2,
      "stop": ["a", "b"], "presence_penalty": 1, "frequency_penalty": -1, "logit_bias": {"17": -2.5}, "n": 8,
      "ignore_eos": true)");
  ASSERT_TRUE(request) << request.error().sentence();
  const GenerateOptions& o = request->request.options;
  EXPECT_EQ(o.max_tokens, 7u);
  EXPECT_EQ(o.sampling.temperature, 0.5f);
  EXPECT_EQ(o.sampling.top_p, 0.25f);
  EXPECT_EQ(o.sampling.top_k, 3u);
  EXPECT_EQ(o.sampling.min_p, 0.125f);
  EXPECT_EQ(o.sampling.seed, UINT64_MAX - 1);
  EXPECT_EQ(o.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.sampling.presence_penalty, 1.0f);
  EXPECT_EQ(o.sampling.frequency_penalty, -1.0f);
  ASSERT_EQ(o.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(o.sampling.logit_bias[0], (std::pair<int32_t, float>{17, -2.5f}));
  EXPECT_EQ(request->choices, 8u);
  EXPECT_TRUE(o.ignore_eos);
}

TEST(CompletionRequest, WhatTheBodyLeavesOutIsTheDefault) {
  const auto body = parse_json(R"({"prompt": "x", "temperature": null})", "body");
  GenerateOptions defaults;
  defaults.max_tokens = 5;
  defaults.sampling.temperature = 0.125f;
  defaults.stop = {"end"};
  const auto request = read_completion(Endpoint::kCompletions, *body, defaults);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->request.options.max_tokens, 5u);
  EXPECT_EQ(request->request.options.sampling.temperature, 0.125f);
  EXPECT_EQ(request->request.options.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(request->choices, 1u);
}

TEST(CompletionRequest, MinusOneMeansNone) {
  const auto body = parse_json(
      R"({"prompt": "x", "top_k": -1, "top_n_sigma": -1, "dry_range": -1, "max_tokens": -1, "seed": -1})",
      "body");
  GenerateOptions defaults;
  defaults.max_tokens = 5;
  defaults.sampling.top_n_sigma = 2;
  defaults.sampling.dry_range = 3;
  defaults.sampling.seed = 42;
  const auto request = read_completion(Endpoint::kCompletions, *body, defaults);
  ASSERT_TRUE(request) << request.error().sentence();
  const GenerateOptions& o = request->request.options;
  EXPECT_EQ(o.max_tokens, 0u);
  EXPECT_EQ(o.sampling.top_k, 0u);
  EXPECT_EQ(o.sampling.top_n_sigma, 0.0f);
  EXPECT_EQ(o.sampling.dry_range, 0u);
  EXPECT_EQ(o.sampling.seed, 42u);  // the reader's seed: each line of a batch has its own
}

TEST(CompletionRequest, ADefaultYieldsToWhatTheBodySays) {
  const auto read_with = [](uint32_t limit, uint32_t least, const char* fields) {
    GenerateOptions defaults;
    defaults.max_tokens = limit;
    defaults.sampling.min_tokens = least;
    const auto body = parse_json(R"({"prompt": "x")" + std::string(fields) + "}", "body");
    auto request = read_completion(Endpoint::kCompletions, *body, defaults);
    EXPECT_TRUE(request) << fields;
    EXPECT_TRUE(settle_min_tokens(request->says_min_tokens, &request->request.options)) << fields;
    const GenerateOptions& o = request->request.options;
    return std::pair(o.max_tokens, o.sampling.min_tokens);
  };
  EXPECT_EQ(read_with(0, 4, R"(, "max_tokens": 2)"), std::pair(2u, 2u));
  EXPECT_EQ(read_with(4, 0, R"(, "min_tokens": 6)"), std::pair(6u, 6u));
  EXPECT_EQ(read_with(4, 2, R"(, "max_tokens": -1)"), std::pair(0u, 2u));
  EXPECT_EQ(read_with(4, 2, R"(, "response_format": {"type": "json_object"})"), std::pair(4u, 0u));
  GenerateOptions own;
  own.sampling.min_tokens = 2;
  own.grammar.kind = GrammarKind::kRegex;
  const auto settled = settle_min_tokens(/*is_own=*/true, &own);
  ASSERT_FALSE(settled);
  EXPECT_TRUE(settled.error().sentence().starts_with("Field \"min_tokens\"")) << settled.error().sentence();
}

TEST(CompletionRequest, MessagesAreTextsOrParts) {
  const auto request = read(Endpoint::kChatCompletions, R"({"messages": [
      {"role": "developer", "content": "be short"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": null}]})");
  ASSERT_TRUE(request) << request.error().sentence();
  EXPECT_EQ(to_text(request->chat.messages),
            R"([{"role":"system","content":"be short"},{"role":"user","content":"ab"}])");
}

TEST(CompletionRequest, PromptsAreTextOrIds) {
  const auto text = read(Endpoint::kCompletions, R"({"prompt": "once", "stop": "e"})");
  ASSERT_TRUE(text);
  EXPECT_EQ(std::get<std::string>(text->request.prompt), "once");
  EXPECT_EQ(text->request.options.stop, std::vector<std::string>{"e"});
  const auto ids = read(Endpoint::kCompletions, R"({"prompt": [1, 2, 300]})");
  ASSERT_TRUE(ids);
  EXPECT_EQ(std::get<std::vector<int32_t>>(ids->request.prompt), (std::vector<int32_t>{1, 2, 300}));
  for (const char* wrong : {"{}", R"({"prompt": 1})", R"({"prompt": ["a", "b"]})", R"({"prompt": [-1]})",
                            R"({"prompt": [1.5]})", R"({"prompt": [4294967296]})", R"({"prompt": [[1]]})"}) {
    const auto request = read(Endpoint::kCompletions, wrong);
    ASSERT_FALSE(request) << wrong;
    EXPECT_NE(request.error().sentence().find("\"prompt\""), std::string::npos) << wrong;
  }
}

TEST(CompletionRequest, HarmlessFieldsAreIgnored) {
  for (const char* fields :
       {R"("model": "x", "user": "y", "metadata": {"a": "b"}, "stream": true, "store": false)",
        R"("logprobs": false, "top_logprobs": 0, "response_format": {"type": "text"}, "tools": [])",
        R"("best_of": 1, "suffix": "", "whatever": null, "tool_choice": "none", "functions": {})"}) {
    EXPECT_EQ(chat_error(fields), "no error") << fields;
  }
}

TEST(CompletionRequest, WhatWouldChangeTheAnswerIsRefusedByName) {
  EXPECT_EQ(chat_error(R"("functions": [{"name": "f"}])"),
            "Field \"functions\" is not supported and would change the answer; leave it out.");
  EXPECT_FALSE(read(Endpoint::kCompletions, R"({"prompt": "x", "tools": [{"type": "function"}]})"));
  EXPECT_EQ(chat_error(R"("temprature": 1)"),
            "Field \"temprature\" is not supported; did you mean \"temperature\".");
  EXPECT_NE(chat_error(R"("prompt": "x")").find("\"prompt\" is not supported"), std::string::npos);
}

TEST(CompletionRequest, LogProbabilitiesAreAskedForInTheWayOfTheEndpoint) {
  const auto asked = chat(R"("logprobs": true, "top_logprobs": 20)");
  ASSERT_TRUE(asked) << asked.error().sentence();
  EXPECT_TRUE(asked->request.options.logprobs);
  EXPECT_EQ(asked->request.options.top_logprobs, 20u);
  const auto text = read(Endpoint::kCompletions, R"({"prompt": "x", "logprobs": 0})");
  ASSERT_TRUE(text) << text.error().sentence();
  EXPECT_TRUE(text->request.options.logprobs);
  EXPECT_EQ(text->request.options.top_logprobs, 0u);
  for (const char* fields :
       {R"("logprobs": 3)", R"("top_logprobs": 3)", R"("logprobs": true, "top_logprobs": 21)"}) {
    EXPECT_NE(chat_error(fields).find("logprobs\""), std::string::npos) << fields;
  }
  EXPECT_FALSE(read(Endpoint::kCompletions, R"({"prompt": "x", "logprobs": 21})"));
}

TEST(CompletionRequest, ValuesOfOtherTypesAndRangesAreRefused) {
  for (const char* fields : {R"("max_tokens": 0)",
                             R"("max_tokens": 1.5)",
                             R"("max_tokens": "7")",
                             R"("max_tokens": 1e300)",
                             R"("max_tokens": 3, "max_completion_tokens": 4)",
                             R"("temperature": "hot")",
                             R"("top_k": -2)",
                             R"("max_tokens": -2)",
                             R"("max_tokens": -1, "max_completion_tokens": 4)",
                             R"("min_tokens": -1)",
                             R"("seed": 18446744073709551616)",
                             R"("n": 0)",
                             R"("n": 9)",
                             R"("stop": "")",
                             R"("stop": [1])",
                             R"("stop": {})",
                             R"("logit_bias": [1])",
                             R"("logit_bias": {"x": 1})",
                             R"("logit_bias": {"1": "x"})",
                             R"("logit_bias": {"-1": 1})",
                             R"("ignore_eos": 1)"}) {
    EXPECT_NE(chat_error(fields), "no error") << fields;
  }
  EXPECT_NE(chat_error(R"("top_k": -2)").find("is -2; allowed is 0 to 2147483647, and -1 for off."),
            std::string::npos);
  EXPECT_NE(chat_error(R"("max_tokens": -1, "max_completion_tokens": 4)").find("\"max_tokens\" (-1)"),
            std::string::npos);
}

TEST(CompletionRequest, MessagesThatAreNoneAreRefused) {
  for (const char* messages :
       {"null", "[]", "{}", R"("hi")", R"([1])", R"([{"content": "x"}])", R"([{"role": "user"}])",
        R"([{"role": "robot", "content": "x"}])", R"([{"role": "user", "content": 1}])",
        R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])",
        R"([{"role": "user", "content": ["x"]}])",
        R"([{"role": "assistant", "content": "x", "tool_calls": [{}]}])"}) {
    EXPECT_NE(message_error(messages), "no error") << messages;
  }
  EXPECT_FALSE(read_completion(Endpoint::kChatCompletions, Json::array(), {}));
}

TEST(CompletionRequest, PicturesAreReadWithTheirDetail) {
  const auto detail_of = [](const std::string& part) {
    const auto json = parse_json(part, "part");
    EXPECT_TRUE(json && is_image_part(*json)) << part;
    const auto picture = read_image_part(*json);
    EXPECT_TRUE(picture) << part;
    EXPECT_EQ(picture->file, "abc") << part;
    return picture->in_detail;
  };
  const std::string chat_part = R"({"type": "image_url", "image_url": {"url": "data:image;base64,YWJj")";
  EXPECT_EQ(detail_of(chat_part + R"(, "detail": "high"}})"), true);
  EXPECT_EQ(detail_of(chat_part + R"(, "detail": "low"}})"), false);
  EXPECT_EQ(detail_of(chat_part + R"(, "detail": "auto"}})"), std::nullopt);
  EXPECT_EQ(detail_of(chat_part + R"(, "detail": 1}})"), std::nullopt);
  EXPECT_EQ(detail_of(chat_part + "}}"), std::nullopt);
  const std::string input_part = R"({"type": "input_image", "image_url": "data:image;base64,YWJj")";
  EXPECT_EQ(detail_of(input_part + R"(, "detail": "high"})"), true);
  EXPECT_EQ(detail_of(input_part + "}"), std::nullopt);
}

TEST(CompletionBody, TellsLogProbabilitiesButForTheEndToken) {
  Generation generation;
  generation.stop = StopReason::kEndOfText;
  generation.tokens = {1, 2, 0};
  generation.logprobs = {{-1, {{1, -1.0f}, {3, -2.0f}}}, {-0.5f, {}}, {0, {}}};
  const TokenText text_of = [](int32_t id) {
    return id == 3 ? std::string("\xc3") : "\xc3\xa9" + std::to_string(id);
  };
  const auto logprobs = [&](Endpoint endpoint) {
    const Json body = completion_body({.endpoint = endpoint,
                                       .id = "7",
                                       .model = "m",
                                       .created = 1,
                                       .choices = std::span(&generation, 1),
                                       .token_text = text_of});
    return to_text(body["choices"][0]["logprobs"]);
  };
  EXPECT_EQ(
      logprobs(Endpoint::kChatCompletions),
      R"({"content":[{"token":"é1","logprob":-1.0,"bytes":[195,169,49],"top_logprobs":[)"
      R"({"token":"é1","logprob":-1.0,"bytes":[195,169,49]},{"token":"�","logprob":-2.0,"bytes":[195]}]},)"
      R"({"token":"é2","logprob":-0.5,"bytes":[195,169,50],"top_logprobs":[]}],"refusal":null})");
  EXPECT_EQ(logprobs(Endpoint::kCompletions),
            R"({"tokens":["é1","é2"],"token_logprobs":[-1.0,-0.5],"top_logprobs":[{"é1":-1.0,"�":-2.0},)"
            R"({"é2":-0.5}],"text_offset":[0,2]})");
}

TEST(CompletionRequest, ToolsAreReadAsTheServerReadsThem) {
  const auto request =
      chat(R"("tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required")");
  ASSERT_TRUE(request) << request.error().sentence();
  EXPECT_EQ(request->chat.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(request->chat.tools.size(), 1u);
}

TEST(CompletionBody, CallsAndReasoningAreTakenOutOfTheText) {
  Generation generation;
  generation.stop = StopReason::kEndOfText;
  generation.text = "f\", \"arguments\": {}}</tool_call>";
  const Json body = completion_body({.choices = std::span(&generation, 1),
                                     .parser = {.calls = call_format_named("hermes")},
                                     .forced = "<tool_call>{\"name\": \""});
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "f");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
}

TEST(CompletionBody, IsOfItsEndpoint) {
  Generation first;
  first.text = "one\xff";
  first.stop = StopReason::kEndOfText;
  first.timings = {.prompt_tokens = 10, .cached_tokens = 8, .generated_tokens = 3};
  Generation second = first;
  second.stop = StopReason::kContextFull;
  second.timings.generated_tokens = 4;
  const Generation choices[] = {first, second};
  const Json chat = completion_body(
      {.endpoint = Endpoint::kChatCompletions, .id = "7", .model = "m", .created = 1, .choices = choices});
  EXPECT_EQ(
      to_text(chat),
      R"({"id":"chatcmpl-7","object":"chat.completion","created":1,"model":"m","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"one�","refusal":null},"logprobs":null,"finish_reason":"stop"},)"
      R"({"index":1,"message":{"role":"assistant","content":"one�","refusal":null},"logprobs":null,"finish_reason":"length"}],)"
      R"("usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,)"
      R"("prompt_tokens_details":{"cached_tokens":8}}})");
  const Json text = completion_body({.endpoint = Endpoint::kCompletions,
                                     .id = "7",
                                     .model = "m",
                                     .created = 1,
                                     .choices = std::span(choices, 1)});
  EXPECT_EQ(to_text(text["choices"]),
            R"([{"index":0,"text":"one�","logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(text["object"], "text_completion");
}

TEST(CompletionBody, TokensWithoutTextsAreGivenAsIds) {
  Generation generation;
  generation.tokens = {7, 8};
  const CompletionAnswer answer{.endpoint = Endpoint::kCompletions, .choices = std::span(&generation, 1)};
  EXPECT_FALSE(completion_body(answer)["choices"][0].contains("token_ids"));
  CompletionAnswer with_ids = answer;
  with_ids.token_ids = true;
  EXPECT_EQ(to_text(completion_body(with_ids)["choices"][0]["token_ids"]), "[7,8]");
}

}  // namespace
}  // namespace doppler::openai
