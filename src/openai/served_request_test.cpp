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

TEST(ServedRequest, ChunksMayHaveOneToken) {
  EXPECT_EQ(chat(R"("stream_options": {"chunk_tokens": 1})")->options.batch, 1u);
  EXPECT_EQ(field_of(chat(R"("stream_options": {"chunk_tokens": 257})").error().sentence()), "chunk_tokens");
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

// Tokens that came together with the first have no time of their own.
TEST(Usage, TokensThatCameTogetherMakeNoSpeed) {
  const Timings later{.generated_tokens = 20, .ttft_seconds = 1, .first_tokens = 16, .decode_seconds = 0.5};
  EXPECT_DOUBLE_EQ(later.decode_rate(), 8);
  EXPECT_DOUBLE_EQ(timings_json(usage_of(later))["predicted_per_second"].get<double>(), 8);
  EXPECT_DOUBLE_EQ(usage_of(later).total_seconds, 1.5);
  const Timings together{.generated_tokens = 4, .queued_seconds = 1, .ttft_seconds = 3, .first_tokens = 4};
  EXPECT_DOUBLE_EQ(together.decode_rate(), 2);
  EXPECT_DOUBLE_EQ(usage_of(together).decode_seconds, 1.5);
  EXPECT_EQ((Timings{.generated_tokens = 1, .ttft_seconds = 1, .first_tokens = 1}.decode_rate()), 0);
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
      {R"("add_generation_prompt": 1)", "add_generation_prompt"},
      {R"("continue_final_message": true)", "continue_final_message"},
      {R"("continue_final_message": true, "add_generation_prompt": true, "messages": [{"role": "assistant", "content": "x"}])",
       "continue_final_message"},
      {R"("continue_final_message": true, "messages": [{"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}])",
       "continue_final_message"},
      {R"("continue_final_message": true, "messages": [{"role": "assistant", "content": "x"}], "tool_choice": "required")",
       "continue_final_message"},
      {R"("chat_template_kwargs": {"add_generation_prompt": false})", "chat_template_kwargs"},
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

TEST(ServedRequest, AnAnswerMayGoOnFromTheLastMessage) {
  const auto plain = chat(R"("messages": [{"role": "assistant", "content": "x"}])");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->chat.opens_answer && !plain->chat.continues);
  const auto goes_on =
      chat(R"("continue_final_message": true, "messages": [{"role": "assistant", "content": "x"}])");
  ASSERT_TRUE(goes_on) << goes_on.error().sentence();
  EXPECT_TRUE(!goes_on->chat.opens_answer && goes_on->chat.continues);
  const auto bare = chat(R"("add_generation_prompt": false)");
  ASSERT_TRUE(bare) << bare.error().sentence();
  EXPECT_TRUE(!bare->chat.opens_answer && !bare->chat.continues && bare->ignored.empty());
}

// The conversation goes on whatever a model wrote as arguments, and templates get an object.
TEST(ServedRequest, ArgumentsOfEarlierCallsAreObjects) {
  const char* const cases[][2] = {
      {R"("")", "{}"},
      {R"("  ")", "{}"},
      {"null", "{}"},
      {R"("null")", "{}"},
      {R"({"x": 1})", R"({"x":1})"},
      {R"("{\"x\": 1}")", R"({"x":1})"},
      {R"("\"{\\\"x\\\": 1}\"")", R"({"x":1})"},
      {R"("[1, 2]")", R"({"arguments":[1,2]})"},
      {"[1]", R"({"arguments":[1]})"},
      {R"("5")", R"({"arguments":5})"},
      {R"("{\"x\": ")", R"({"arguments":"{\"x\": "})"},
  };
  for (const auto& [given, read] : cases) {
    const auto request =
        chat(R"("messages": [{"role": "assistant", "content": null, "tool_calls": [{"function": {
        "name": "f", "arguments": )" +
             std::string(given) + "}}]}]");
    ASSERT_TRUE(request) << given << request.error().sentence();
    EXPECT_EQ(to_text(request->chat.messages[0]["tool_calls"][0]["function"]["arguments"]), read) << given;
  }
}

TEST(ServedRequest, EarlierReasoningHasTwoNames) {
  const auto request = chat(R"("messages": [{"role": "assistant", "content": "a", "reasoning": "R"},
      {"role": "assistant", "content": "b", "reasoning": "no", "reasoning_content": "S"}])");
  ASSERT_TRUE(request) << request.error().sentence();
  EXPECT_EQ(request->chat.messages[0]["reasoning_content"], "R");
  EXPECT_EQ(request->chat.messages[1]["reasoning_content"], "S");
}

TEST(ServedRequest, AToolWithoutParametersHasNone) {
  for (const char* parameters : {"", R"(, "parameters": {})", R"(, "parameters": null)"}) {
    const auto request =
        chat(R"("tools": [{"type": "function", "function": {"name": "f")" + std::string(parameters) + "}}]");
    ASSERT_TRUE(request);
    EXPECT_EQ(to_text(request->chat.tools[0]["function"]["parameters"]),
              R"({"type":"object","properties":{}})")
        << parameters;
  }
}

TEST(ServedRequest, ASeedMayBeRandom) {
  EXPECT_EQ(chat("")->seed, ServedRequest::Seed::kUnsaid);
  EXPECT_EQ(chat(R"("seed": null)")->seed, ServedRequest::Seed::kUnsaid);
  EXPECT_EQ(chat(R"("seed": -1)")->seed, ServedRequest::Seed::kRandom);
  EXPECT_EQ(chat(R"("seed": 7)")->seed, ServedRequest::Seed::kGiven);
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

TEST(ServedRequest, BlanksOfJsonAreAskedFor) {
  EXPECT_FALSE(chat(R"("response_format": {"type": "json_object"})")->options.grammar.json_blanks);
  const auto asked = chat(R"("json_blanks": true, "response_format": {"type": "json_object"})");
  ASSERT_TRUE(asked) << asked.error().sentence();
  EXPECT_TRUE(asked->options.grammar.json_blanks && asked->ignored.empty());
  const auto vllm =
      chat(R"("structured_outputs": {"disable_any_whitespace": true, "json": {"type": "array"}})");
  ASSERT_TRUE(vllm) << vllm.error().sentence();
  EXPECT_EQ(vllm->options.grammar.text, R"({"type":"array"})");
}

TEST(ServedRequest, ToolsMayBeAllowedByName) {
  const std::string tools =
      R"("tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}], )";
  const auto names = [&](const std::string& choice) {
    const auto request = chat(tools + R"("tool_choice": )" + choice);
    if (!request) return request.error().sentence();
    std::string out = request->chat.tool_choice == ToolChoice::kRequired ? "required:" : "auto:";
    for (const Json& tool : request->chat.tools) out += tool["function"]["name"].get<std::string>();
    return out;
  };
  EXPECT_EQ(
      names(
          R"({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}})"),
      "required:g");
  EXPECT_EQ(
      names(R"({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]})"),
      "auto:f");
  for (const char* choice : {R"({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "h"}]})",
                             R"({"type": "allowed_tools", "mode": "all", "tools": [{"name": "f"}]})",
                             R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}})"})
    EXPECT_EQ(field_of(names(choice)), "tool_choice") << choice;
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
