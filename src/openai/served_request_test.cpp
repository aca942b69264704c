// Bodies that the server gets: what is read, what is ignored and named, what is refused.
#include "openai/served_request.h"

#include <gtest/gtest.h>

#include "openai/usage.h"

namespace doppler::openai {
namespace {

Result<ServedRequest> chat(const std::string& fields) {
  const std::string text = R"({"messages": [{"role": "user", "content": "hi"}])" +
                           std::string(fields.empty() ? "" : ", ") + fields + "}";
  const auto body = parse_json(text, "body");
  EXPECT_TRUE(body) << text;
  return read_served(Endpoint::kChatCompletions, *body, {});
}

TEST(ServedRequest, UnknownFieldsAreNamedAndIgnored) {
  const auto request =
      chat(R"("no_such_field": 1, "store": true, "stream": true, "stream_options": {"include_usage": true},
      "dry_multiplier": 0.5, "typical_p": 0.9, "reasoning_effort": "none", "chat_template_kwargs": {"x": 1})");
  ASSERT_TRUE(request) << request.error().sentence();
  EXPECT_EQ(request->ignored, (std::vector<std::string>{"no_such_field"}));
  EXPECT_TRUE(request->is_streamed && request->told.usage);
  EXPECT_EQ(request->options.sampling.dry_multiplier, 0.5f);
  EXPECT_EQ(request->options.sampling.typical_p, 0.9f);
  EXPECT_EQ(to_text(request->chat.template_arguments),
            R"({"reasoning_effort":"none","enable_thinking":false,"x":1})");
}

TEST(ServedRequest, WhatIsToldBesideTheAnswerIsAskedFor) {
  const auto plain = chat("");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->caches_prompt && !plain->told.timings && !plain->told.progress && !plain->chat.one_call);
  const auto all = chat(
      R"("cache_prompt": false, "timings_per_token": true, "return_progress": true, "parallel_tool_calls": false)");
  ASSERT_TRUE(all) << all.error().sentence();
  EXPECT_TRUE(!all->caches_prompt && all->told.timings && all->told.progress && all->chat.one_call);
  EXPECT_TRUE(all->ignored.empty());
}

TEST(ServedRequest, TiersArePriorities) {
  EXPECT_EQ(chat("")->priority, kDefaultTier);
  EXPECT_EQ(chat(R"("service_tier": "auto")")->priority, kDefaultTier);
  EXPECT_EQ(chat(R"("service_tier": "flex")")->priority, kFlexTier);
  EXPECT_EQ(chat(R"("service_tier": "priority")")->priority, kPriorityTier);
  const auto unknown = chat(R"("service_tier": "gold")");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(),
            R"(Field "service_tier" must be auto, default, flex, scale or priority, but it is "gold".)");
}

TEST(Usage, RatesAreOfTheTimesTheyStandBeside) {
  const Json told = timings_json({.prompt_tokens = 100,
                                  .cached_tokens = 20,
                                  .generated_tokens = 11,
                                  .queued_seconds = 1,
                                  .ttft_seconds = 1.5,
                                  .decode_seconds = 2});
  EXPECT_EQ(
      to_text(told),
      R"({"cache_n":20,"prompt_n":80,"prompt_ms":500.0,"prompt_per_token_ms":6.25,"prompt_per_second":160.0,)"
      R"("predicted_n":11,"predicted_ms":2000.0,"predicted_per_token_ms":200.0,"predicted_per_second":5.0})");
  const Json nothing = timings_json({});
  EXPECT_EQ(nothing["prompt_per_second"], 0.0);
  EXPECT_EQ(nothing["predicted_per_second"], 0.0);
}

TEST(ServedRequest, PredictionsAreTextsOrLists) {
  const auto text =
      chat(R"("prediction": {"type": "content", "content": "one two"}, "draft": "lookup", "draft_rows": 4)");
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->options.prediction, "one two");
  EXPECT_EQ(text->options.draft, "lookup");
  EXPECT_EQ(text->options.draft_rows, 4u);
  EXPECT_TRUE(text->ignored.empty());
  const auto list = chat(
      R"("prediction": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})");
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->options.prediction, "ab");
  EXPECT_TRUE(chat(R"("prediction": null)"));
}

TEST(Usage, TellsDraftsWhereThereWereAny) {
  Usage usage{.prompt_tokens = 3, .generated_tokens = 9};
  EXPECT_FALSE(find(usage_json(usage), "completion_tokens_details"));
  EXPECT_FALSE(find(timings_json(usage), "draft_n"));
  usage.drafted_tokens = 8;
  usage.accepted_tokens = 5;
  const Json told = usage_json(usage), timings = timings_json(usage);
  EXPECT_EQ(told["completion_tokens_details"]["accepted_prediction_tokens"], 5);
  EXPECT_EQ(told["completion_tokens_details"]["rejected_prediction_tokens"], 3);
  EXPECT_EQ(timings["draft_n"], 8);
  EXPECT_EQ(timings["draft_n_accepted"], 5);
}

TEST(ServedRequest, ErrorsNameTheField) {
  const char* const cases[][2] = {
      {R"("temperature": "hot")", "temperature"},
      {R"("cache_prompt": 1)", "cache_prompt"},
      {R"("timings_per_token": "yes")", "timings_per_token"},
      {R"("return_progress": [1])", "return_progress"},
      {R"("parallel_tool_calls": 0)", "parallel_tool_calls"},
      {R"("add_generation_prompt": false)", "add_generation_prompt"},
      {R"("stream": 1)", "stream"},
      {R"("n": 0)", "n"},
      {R"("stop": [""])", "stop"},
      {R"("logprobs": 5)", "logprobs"},
      {R"("top_logprobs": 5)", "top_logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
      {R"("response_format": {"type": "xml"})", "response_format"},
      {R"("response_format": {"type": "json_schema"})", "response_format"},
      {R"("grammar": 1)", "grammar"},
      {R"("grammar": "a", "guided_regex": "b")", "guided_regex"},
      {R"("guided_choice": [1])", "guided_choice"},
      {R"("structured_outputs": {"structural_tag": "x"})", "structured_outputs"},
      {R"("tools": [{}])", "tools"},
      {R"("tools": {"a": 1})", "tools"},
      {R"("tool_choice": "must")", "tool_choice"},
      {R"("tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": [{"type": "function", "function": {"name": "f"}}])",
       "tool_choice"},
      {R"("chat_template_kwargs": {"messages": []})", "chat_template_kwargs"},
      {R"("draft": 1)", "draft"},
      {R"("draft_rows": 9)", "draft_rows"},
      {R"("prediction": "text")", "prediction"},
      {R"("prediction": {"type": "content", "content": [{"type": "text"}]})", "prediction"},
      {R"("messages": [])", "messages"},
      {R"("messages": [{"role": "robot", "content": ""}])", "messages.role"},
      {R"("messages": [{"role": "user"}])", "messages.content"},
      {R"("messages": [{"role": "user", "content": [{"type": "image_url"}]}])", "messages.content"},
  };
  for (const auto& [fields, field] : cases) {
    const auto request = chat(fields);
    ASSERT_FALSE(request) << fields;
    EXPECT_EQ(field_of(request.error().sentence()), field) << request.error().sentence();
  }
}

TEST(ServedRequest, AConversationWithToolsIsAsTemplatesReadIt) {
  const auto request = chat(
      R"("tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required", "messages": [
      {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
      {"role": "tool", "tool_call_id": "1", "content": "42"}])");
  ASSERT_TRUE(request) << request.error().sentence();
  EXPECT_EQ(
      to_text(request->chat.messages),
      R"([{"role":"system","content":"ab"},{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function",)"
      R"("function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","content":"42","tool_call_id":"1"}])");
  EXPECT_EQ(request->chat.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(request->chat.tools.size(), 1u);
}

TEST(ServedRequest, GrammarsHaveManyNames) {
  const struct {
    const char* fields;
    GrammarKind kind;
    const char* text;
  } cases[] = {
      {R"("response_format": {"type": "text"}, "grammar": "")", GrammarKind::kNone, ""},
      {R"("response_format": {"type": "json_object"})", GrammarKind::kJsonSchema, R"({"type": "object"})"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": {"b": 1, "a": 2}}})",
       GrammarKind::kJsonSchema, R"({"b":1,"a":2})"},
      {R"("json_schema": {"type": "array"})", GrammarKind::kJsonSchema, R"({"type":"array"})"},
      {R"("grammar": "root ::= \"x\"")", GrammarKind::kGrammar, "root ::= \"x\""},
      {R"("guided_regex": "[a-z]")", GrammarKind::kRegex, "[a-z]"},
      {R"("structured_outputs": {"choice": ["a b", "c|\u00e9"]})", GrammarKind::kRegex,
       "a\\x{20}b|c\\x{7C}\xc3\xa9"},
  };
  for (const auto& [fields, kind, text] : cases) {
    const auto request = chat(fields);
    ASSERT_TRUE(request) << request.error().sentence();
    EXPECT_EQ(request->options.grammar.kind, kind) << fields;
    EXPECT_EQ(request->options.grammar.text, text);
  }
}

TEST(ServedRequest, PromptsMayBeMany) {
  const auto read = [](const std::string& prompt) {
    const auto body = parse_json(R"({"prompt": )" + prompt + "}", "body");
    const auto request = read_served(Endpoint::kCompletions, *body, {});
    return request ? static_cast<int>(request->prompts.size()) : -1;
  };
  EXPECT_EQ(read(R"("a")"), 1);
  EXPECT_EQ(read("[1, 2]"), 1);
  EXPECT_EQ(read(R"(["a", "b"])"), 2);
  EXPECT_EQ(read("[[1], [2, 3], [4]]"), 3);
  for (const char* wrong : {"[]", "{}", "1", "[-1]", "[1.5]", "[[null]]", "null"})
    EXPECT_EQ(read(wrong), -1) << wrong;
}

}  // namespace
}  // namespace doppler::openai
