// Prompts of chats: the input of templates, the beginning and continuation of answers, tools that a template does not
// know.
#include "openai/formats/chat_prompt.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "openai/formats/formats.h"
#include "openai/formats/shown_events.h"
#include "openai/formats/told_tools.h"

namespace doppler::openai {
namespace {

// The prompt of a conversation with a call, its result and a grammar, as a template of the format would see it.
ChatPrompt prompt_of(const char* source, const char* body, GrammarKind grammar = GrammarKind::kNone) {
  const auto chat = read_chat_fields(*parse_json(body, "body"));
  const auto prompt =
      chat_prompt(*chat, {.kind = grammar, .text = "{}", .source = "It"},
                  {.source = source, .render = [](const ChatFields& shown) -> Result<std::string> {
                     return to_text(shown.messages) + to_text(shown.tools);
                   }});
  EXPECT_TRUE(prompt) << source;
  return *prompt;
}

constexpr const char* kConversation =
    R"({"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "", "reasoning_content": "R",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{\"a\": \"b\", \"c\": true}"}},
                       {"id": "2", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "2", "content": "two"}, {"role": "tool", "tool_call_id": "1", "content": "one"}]})";

TEST(ChatPrompt, EarlierCallsAreAsTheTemplateReadsThem) {
  const char* const lfm2 = R"("content":"<|tool_call_start|>[f(a=\"b\", c=True), g()]<|tool_call_end|>")";
  EXPECT_NE(prompt_of("List of tools: ", kConversation).text.find(lfm2), std::string::npos);
  const char* const deepseek =
      R"("content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",)"
      R"("arguments":"{\"a\":\"b\",\"c\":true}"}})";
  EXPECT_NE(prompt_of("<｜tool▁calls▁begin｜>' + arguments", kConversation).text.find(deepseek),
            std::string::npos);
  const char* const objects = R"("arguments":{"a":"b","c":true}}})";
  EXPECT_NE(prompt_of("<｜tool▁calls▁begin｜>' + arguments|tojson", kConversation).text.find(objects),
            std::string::npos);
}

// Harmony's template reads one call a message and takes reasoning from the content.
TEST(ChatPrompt, HarmonyHasOneCallAMessageWithItsResult) {
  const std::string text = prompt_of("<|start|>assistant<|channel|>", kConversation).text;
  size_t last = 0;
  for (const char* part :
       {R"("content":"R")", R"("name":"f")", R"("content":"one")", R"("name":"g")", R"("content":"two")"}) {
    const size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    EXPECT_GT(at, last) << part;
    last = at;
  }
}

TEST(ChatPrompt, AnswersOfHarmonyWithAGrammarBeginInTheirChannel) {
  const ChatPrompt prompt =
      prompt_of("<|start|>assistant<|channel|>", R"({"messages": [{"role": "user", "content": "Q"}]})",
                GrammarKind::kJsonSchema);
  EXPECT_EQ(prompt.forced, "<|channel|>final<|message|>");
  EXPECT_TRUE(prompt.text.ends_with(prompt.forced));
  EXPECT_TRUE(prompt.shows_special);
  OutputParser parser(prompt.parser);
  EXPECT_EQ(shown({parser.push(prompt.forced), parser.push("{}"), parser.finish()}), "{}");
}

// The prompt of an answer that goes on from "Rome is" by a template that opens and closes messages.
ChatPrompt continued_by(const char* source, const std::string& content) {
  const auto chat = read_chat_fields(
      {{"messages", {{{"role", "user"}, {"content", "Q"}}, {{"role", "assistant"}, {"content", content}}}},
       {"continue_final_message", true}});
  EXPECT_TRUE(chat) << chat.error().sentence();
  const auto render = [](const ChatFields& shown) -> Result<std::string> {
    std::string out;
    for (const Json& message : shown.messages)
      out += "<" + message["role"].get<std::string>() + ">" + message["content"].get<std::string>() + "<end>";
    return out + (shown.opens_answer ? "<assistant>" : "");
  };
  const auto prompt = chat_prompt(*chat, {}, {.source = source, .render = render});
  EXPECT_TRUE(prompt) << prompt.error().sentence();
  return *prompt;
}

TEST(ChatPrompt, AnAnswerGoesOnWhereItsBeginningEnds) {
  EXPECT_EQ(continued_by("", "Rome is ").text, "<user>Q<end><assistant>Rome is ");
  EXPECT_EQ(continued_by("", "end").text, "<user>Q<end><assistant>end");
  EXPECT_EQ(continued_by("", "").text, "<user>Q<end><assistant>");
  // The text has begun, so a mark of reasoning or a brace in it is text.
  OutputParser text(continued_by("<think>", "Rome").parser);
  EXPECT_EQ(shown({text.push(" <think>."), text.finish()}), " <think>.");
  OutputParser brace({.calls = call_format_named("llama-3"), .continues = true});
  EXPECT_EQ(shown({brace.push("{\"name\": \"f\"}"), brace.finish()}), "{\"name\": \"f\"}");
  OutputParser reasoning(continued_by("<think>", "<think>Rome").parser);
  EXPECT_EQ(shown({reasoning.push(" is</think>It"), reasoning.finish()}), "<think> is|It");
  OutputParser harmony(continued_by("<|start|>assistant<|channel|>", "Rome").parser);
  EXPECT_EQ(shown({harmony.push(" is<|return|>"), harmony.finish()}), " is");
}

TEST(ChatPrompt, ATemplateThatLeavesTheLastMessageOutCannotContinueIt) {
  const auto chat = read_chat_fields(
      {{"messages", {{{"role", "assistant"}, {"content", "x"}}}}, {"continue_final_message", true}});
  ASSERT_TRUE(chat);
  const auto prompt =
      chat_prompt(*chat, {}, {.render = [](const ChatFields&) -> Result<std::string> { return ""; }});
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().kind(), ErrorKind::kUnsupported);
}

constexpr const char* kWithTools =
    R"({"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "description": "D"}}],
        "messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A", "tool_calls": [
          {"id": "1", "function": {"name": "f", "arguments": "{\"a\": 1}"}}, {"id": "2", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "1", "content": "one"}, {"role": "tool", "tool_call_id": "2", "content": "two"},
        {"role": "user", "content": "And?"}]})";

// Builds the prompt with a template that knows no tools, and only the roles in `roles`.
Result<ChatPrompt> told_prompt(std::string_view roles, bool refuses_others) {
  const auto chat = read_chat_fields(*parse_json(kWithTools, ""));
  const auto render = [=](const ChatFields& shown) -> Result<std::string> {
    EXPECT_TRUE(shown.tools.is_null());
    std::string out;
    for (const Json& message : shown.messages) {
      const std::string role = message["role"].get<std::string>();
      EXPECT_FALSE(message.contains("tool_calls"));
      if (roles.find(role) != std::string_view::npos) {
        out += "<" + role + ">" + message["content"].get<std::string>();
      } else if (refuses_others) {
        return Unexpected(Error(ErrorKind::kInvalidInput, "No role " + role + "."));
      }
    }
    return out + "<assistant>";
  };
  return chat_prompt(*chat, {}, {.knows_tools = false, .render = render, .tell_tools = render_told_tools});
}

TEST(ToldTools, TheConversationTellsOfThemAndShowsCalls) {
  const auto prompt = told_prompt("system user assistant", true);
  ASSERT_TRUE(prompt) << prompt.error().sentence();
  EXPECT_TRUE(prompt->tells_tools);
  EXPECT_TRUE(prompt->text.starts_with("<system>These functions")) << prompt->text;
  EXPECT_NE(
      prompt->text.find(R"({"name":"f","description":"D","parameters":{"type":"object","properties":{}}})"),
      std::string::npos);
  const char* const rest =
      "<user>Q<assistant>A\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
      "{\"a\":1}}\n</tool_call>\n<tool_call>\n"
      "{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
      "<user><tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>\nAnd?"
      "<assistant><tool_call>\n{\"name\": \"f\", \"arguments\": ";
  EXPECT_TRUE(prompt->text.ends_with(rest)) << prompt->text;
  EXPECT_EQ(prompt->grammar.kind, GrammarKind::kGrammar);
  OutputParser parser(prompt->parser);
  EXPECT_EQ(shown({parser.push(prompt->forced + "{}}\n</tool_call>"), parser.finish()}), "f({})");
}

// Templates may refuse a system message or leave it out.
TEST(ToldTools, WithoutASystemMessageTheFirstUserTellsOfThem) {
  for (const bool refuses : {true, false}) {
    const auto prompt = told_prompt("user assistant", refuses);
    ASSERT_TRUE(prompt) << prompt.error().sentence();
    EXPECT_TRUE(prompt->text.starts_with("<user>These functions")) << prompt->text;
  }
}

TEST(ToldTools, AreRefusedWhereTheyAreOff) {
  const auto chat = read_chat_fields(*parse_json(kWithTools, ""));
  const auto prompt = chat_prompt(
      *chat, {},
      {.knows_tools = false, .render = [](const ChatFields&) -> Result<std::string> { return ""; }});
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().kind(), ErrorKind::kUnsupported);
}

// Otherwise models would invent arguments.
TEST(CallGrammar, AToolThatNamesNoArgumentsHasNone) {
  const auto grammar_of = [](const char* parameters) {
    const auto tools =
        parse_json(R"([{"function": {"name": "f", "parameters": )" + std::string(parameters) + "}}]", "");
    return call_grammar(*call_format_named("hermes"), *tools, {.name = "f"}).text;
  };
  const std::string none = R"("properties":{},"additionalProperties":false)";
  for (const char* parameters :
       {"{}", "null", R"({"type": "object"})", R"({"type": "object", "properties": {}})",
        R"({"properties": {}, "required": [], "description": "x", "$defs": {"a": {}}})"})
    EXPECT_NE(grammar_of(parameters).find(none), std::string::npos) << parameters;
  for (const char* parameters : {R"({"properties": {"a": {}}})", R"({"additionalProperties": true})",
                                 R"({"$ref": "#/$defs/a"})", R"({"type": ["object", "null"]})"})
    EXPECT_EQ(grammar_of(parameters).find(none), std::string::npos) << parameters;
}

TEST(CallGrammar, BlanksStandWhereTheyAreAskedFor) {
  const auto tools = parse_json(kTools, "");
  const CallFormat& format = *call_format_named("hermes");
  EXPECT_NE(call_grammar(format, *tools, {.name = "f"}).text.find(R"("whitespace_flexible":false)"),
            std::string::npos);
  EXPECT_NE(call_grammar(format, *tools, {.name = "f", .json_blanks = true}).text.find("whitespace_pattern"),
            std::string::npos);
}

// If there is one tool, "required" means that tool by name.
TEST(ChatPrompt, OneRequiredToolIsForcedByName) {
  const std::string body =
      R"({"messages": [{"role": "user", "content": "Q"}], "tool_choice": "required", "tools": )" +
      std::string(kTools) + "}";
  const ChatPrompt prompt = prompt_of("<|start|>assistant<|channel|>", body.c_str());
  EXPECT_EQ(prompt.forced, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>");
  EXPECT_NE(prompt.grammar.kind, GrammarKind::kNone);
}

}  // namespace
}  // namespace doppler::openai
