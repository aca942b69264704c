// Calls and reasoning in the forms in which models write them: each text gives the same events wherever it is cut.
#include "openai/formats/formats.h"

#include <gtest/gtest.h>

#include "openai/answer_writer.h"

namespace doppler::openai {
namespace {

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}])";

// "text|<think>reasoning|f(arguments)", in their order.
std::string shown(const std::vector<std::vector<AnswerEvent>>& pushes) {
  std::string out;
  AnswerEvent::Kind last = AnswerEvent::Kind::kText;
  for (const auto& events : pushes) {
    for (const AnswerEvent& event : events) {
      const bool goes_on = event.kind == last && event.kind != AnswerEvent::Kind::kCall;
      if (!goes_on) {
        if (last == AnswerEvent::Kind::kArguments) out += ")";
        if (!out.empty()) out += "|";
        if (event.kind == AnswerEvent::Kind::kReasoning) out += "<think>";
        if (event.kind == AnswerEvent::Kind::kArguments) out.back() = '(';
      }
      out += event.text;
      last = event.kind;
    }
  }
  return out + (last == AnswerEvent::Kind::kArguments ? ")" : "");
}

struct Case {
  const char* format;
  std::string text, events;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.format << ": " << c.text; }

class Formats : public testing::TestWithParam<Case> {
 protected:
  OutputParser parser() const {
    const ReasoningFormat* reasoning = reasoning_format_of("<think>");
    return OutputParser(
        {.calls = call_format_named(GetParam().format), .reasoning = &reasoning->marks, .tools = kTools});
  }
};

TEST_P(Formats, GivesTheSameWhereverItIsCut) {
  const auto& [format, text, events] = GetParam();
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    OutputParser p = parser();
    EXPECT_EQ(shown({p.push(text.substr(0, cut)), p.push(text.substr(cut)), p.finish()}), events) << cut;
  }
  OutputParser p = parser();
  std::vector<std::vector<AnswerEvent>> bytes;
  for (const char c : text) bytes.push_back(p.push(std::string_view(&c, 1)));
  bytes.push_back(p.finish());
  EXPECT_EQ(shown(bytes), events) << "byte by byte";
}

const Case kCases[] = {
    {"hermes", "Just text. 1 < 2 <tool", "Just text. 1 < 2 <tool"},
    {"hermes", " x \n", " x \n"},
    {"hermes", "<think>\nhm {\n</think>\n\nSo.", "<think>hm {|So."},
    {"hermes", "A <think> later is text.", "A <think> later is text."},
    {"hermes",
     "Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"{\", \"b\": [1, "
     "{}]}}\n</tool_call>",
     "Well.|f({\"a\": \"}\\\"{\", \"b\": [1, {}]})"},
    {"hermes",
     "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"arguments\": {\"a\": 1}, "
     "\"name\": "
     "\"g\"}</tool_call> Done.",
     "f({})|g({\"a\": 1})|Done."},
    {"hermes", "<tool_call>{\"name\": \"f\"}</tool_call>", "f({})"},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "f({\"a\": 1})"},
    {"hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "f({\"a\": )"},  // the limit came
    {"hermes", "See <tool_call> here", "See <tool_call> here"},
    {"hermes", "<tool_call>{\"nam", "<tool_call>{\"nam"},
    {"qwen-xml",
     "<tool_call>\n<function=f>\n<parameter=a>\n5\n</parameter>\n<parameter=b>\n[1,2]\n</parameter>\n</"
     "function>\n"
     "</tool_call>",
     "f({\"a\": \"5\", \"b\": [1,2]})"},
    {"qwen-xml", "Now:<tool_call><function=g></function></tool_call>", "Now:|g({})"},
    {"qwen-xml", "<tool_call>\nno", "<tool_call>\nno"},
    {"llama-3", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "f({\"a\": 1})"},
    {"llama-3",
     "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\"}",
     "f({})|g({})"},
    {"llama-3", "<|python_tag|>print(1)", "<|python_tag|>print(1)"},
    {"llama-3", "{\"a\": [1, 2]} is JSON", "{\"a\": [1, 2]} is JSON"},
    {"llama-3", "Say {\"name\": \"f\"}", "Say {\"name\": \"f\"}"},
    {"mistral",
     "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"é\"}}, {\"name\": \"g\", \"arguments\": {}}]",
     "f({\"a\": \"é\"})|g({})"},
    {"mistral-args", "Ok [TOOL_CALLS]f[CALL_ID]x1[ARGS]{\"a\": {\"b\": 1}}[TOOL_CALLS]g{}",
     "Ok|f({\"a\": {\"b\": 1}})|g({})"},
    {"mistral", "[TOOL_CALLS][ARGS]", "[TOOL_CALLS][ARGS]"},
    {"function-gemma",
     "<start_function_call>call:f{a:<escape>x, "
     "{y}<escape>,n:3,l:[true,{k:<escape><escape>}]}<end_function_call>",
     "f({\"a\":\"x, {y}\",\"n\":3,\"l\":[true,{\"k\":\"\"}]})"},
    {"gemma-4", "<|tool_call>call:f{}<tool_call|>", "f({})"},
    {"gemma-4", "<|tool_call>call:f{a<tool_call|>.", "<|tool_call>call:f{a<tool_call|>."},
};
INSTANTIATE_TEST_SUITE_P(Texts, Formats, testing::ValuesIn(kCases));

TEST(CallFormat, TheTemplateShowsIt) {
  const char* const cases[][2] = {
      {"<tool_call>\n{{ call }}", "hermes"},
      {"<tool_call>\n<function={{ name }}>", "qwen-xml"},
      {"[TOOL_CALLS] [", "mistral"},
      {"[TOOL_CALLS]x[ARGS]", "mistral-args"},
      {"<|python_tag|>", "llama-3"},
      {"in the format {\"name\": function name, \"parameters\": d}", "llama-3"},
      {"<start_function_call>", "function-gemma"},
      {"<|tool_call>call:", "gemma-4"},
  };
  for (const auto& [source, name] : cases) {
    const CallFormat* format = call_format_of(source);
    ASSERT_TRUE(format) << source;
    EXPECT_STREQ(format->name, name);
  }
  EXPECT_FALSE(call_format_of("{{ messages }}"));
  EXPECT_FALSE(reasoning_format_of("{{ messages }}"));
}

// What forces a call is the beginning of one.
TEST(CallFormat, AForcedCallIsRead) {
  for (const char* name : {"hermes", "qwen-xml", "mistral", "mistral-args", "llama-3"}) {
    const CallFormat* format = call_format_named(name);
    OutputParser parser({.calls = format});
    EXPECT_EQ(shown({parser.push(format->forced("f"))}), "f") << name;
  }
}

}  // namespace
}  // namespace doppler::openai
