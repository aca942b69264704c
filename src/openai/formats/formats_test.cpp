// Calls and reasoning in the forms in which models write them: each text gives the same events wherever it is cut.
#include "openai/formats/formats.h"

#include <gtest/gtest.h>

#include "openai/answer_writer.h"
#include "openai/formats/shown_events.h"

namespace doppler::openai {
namespace {

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
    {"qwen-xml", "<tool_call><function=f><parameter=a>x</parameter></tool_call>", "f({\"a\": \"x\"})"},
    {"qwen-xml", "<tool_call></tool_call>", "<tool_call></tool_call>"},
    {"seed",
     "Ok.\n<seed:tool_call>\n<function=f>\n<parameter=a>5</parameter>\n<parameter=b>[1, "
     "2]</parameter>\n</function>\n"
     "</seed:tool_call>",
     "Ok.|f({\"a\": \"5\", \"b\": [1,2]})"},
    {"minimax",
     "<think>\nhm\n</think>\n\nOk.\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x \"y\" "
     "> "
     "z</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
     "<think>hm|Ok.|f({\"a\": \"x \\\"y\\\" > z\"})|g({})"},
    {"minimax", "<minimax:tool_call>no", "<minimax:tool_call>no"},
    {"nemotron",
     "Ok.\n\n<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": "
     "{}}]</TOOLCALL>",
     "Ok.|f({\"a\": 1})|g({})"},
    {"nemotron", "<TOOLCALL>\n[{\"name\": \"g\", \"arguments\": {}}]\n</TOOLCALL>", "g({})"},
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
    {"glm",
     "\n<think>hm</think>\nOk\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>5</arg_value>\n<arg_key>b</"
     "arg_key>\n<arg_value>[1, \"<\"]</arg_value>\n</tool_call>",
     "<think>hm|Ok|f({\"a\": \"5\", \"b\": [1,\"<\"]})"},
    {"glm",
     "<tool_call>g</tool_call><tool_call>f<arg_key>a</arg_key><arg_value>x < y\n</arg_value></tool_call>",
     "g({})|f({\"a\": \"x < y\\n\"})"},
    {"glm", "<tool_call>{\"name\": 1}", "<tool_call>{\"name\": 1}"},
    {"deepseek",
     "Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
     "\"```\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<"
     "｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     "Ok.|f({\"a\": \"```\"})|g({})"},
    {"deepseek-v3.1",
     "<think>hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": {\"b\": "
     "1}}<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "<think>hm|f({\"a\": {\"b\": 1}})|g({})"},
    {"kimi",
     "<think>hm</"
     "think>Ok<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\":"
     " "
     "1}<|tool_call_end|><|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|"
     "tool_calls_"
     "section_end|>",
     "<think>hm|Ok|f({\"a\": 1})|g({})"},
    {"deepseek", "<｜tool▁calls▁begin｜>no", "<｜tool▁calls▁begin｜>no"},
    {"lfm2",
     "Hm.<|tool_call_start|>[f(a=\"x)\\n\\\"\", b={'k': [1, -2.5]}), m.g(on=True, "
     "off=None)]<|tool_call_end|>",
     "Hm.|f({\"a\":\"x)\\n\\\"\",\"b\":{\"k\":[1,-2.5]}})|m.g({\"on\":true,\"off\":null})"},
    {"lfm2", "<|tool_call_start|>[f(a='say \"hi\", it\\'s \\d')]<|tool_call_end|> Done.",
     "f({\"a\":\"say \\\"hi\\\", it's \\\\d\"})|Done."},
    {"lfm2", "<|tool_call_start|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|tool_call_end|>",
     "f({\"a\": 1})"},
    {"lfm2", "<|tool_call_start|>[f(1)]<|tool_call_end|>", "<|tool_call_start|>[f(1)]<|tool_call_end|>"},
    {"lfm2", "See [a link](url).", "See [a link](url)."},
    {"harmony",
     "<|channel|>analysis<|message|>Hm < <|x<|end|><|start|>assistant<|channel|>final<|message|>So.\n",
     "<think>Hm < <|x|So.\n"},
    {"harmony",
     "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>I "
     "look.<|end|><|"
     "start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
     "<think>Hm.|I look.|f({\"a\": 1})"},
    {"harmony", " to=functions.f<|channel|>commentary json<|message|><|call|>", "f({})"},
    {"harmony", "<|channel|>commentary to=python code<|message|>print(1)<|call|>", "<think>print(1)"},
    {"harmony",
     "<|channel|>commentary to=assistant<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>"
     "analysis<|message|>B<|channel|>final<|message|>C<|en",
     "<think>A\n\nB|C<|en"},
    {"harmony", "No head.", "No head."},
};
INSTANTIATE_TEST_SUITE_P(Texts, Formats, testing::ValuesIn(kCases));

TEST(OutputParser, WhereOneCallIsAllowedASecondEndsTheAnswer) {
  const std::pair<const char*, std::string> texts[] = {
      {"hermes",
       "A <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>\n"
       "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call> B"},
      {"mistral",
       "A [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": {}}]"},
  };
  for (const auto& [format, text] : texts) {
    for (const bool one : {true, false}) {
      OutputParser parser({.calls = call_format_named(format), .tools = kTools, .one_call = one});
      const auto events = parser.push(text);
      EXPECT_EQ(parser.is_closed(), one) << format;
      const std::string all = shown({events, parser.finish()});
      EXPECT_EQ(all.starts_with("A|f({\"a\":1})") || all.starts_with("A|f({\"a\": 1})"), true) << all;
      EXPECT_EQ(all.find("g(") == std::string::npos, one) << all;
      EXPECT_EQ(all.find('B') == std::string::npos, one || std::string_view(format) != "hermes") << all;
    }
  }
}

TEST(CallFormat, TheTemplateShowsIt) {
  const char* const cases[][2] = {
      {"<tool_call>\n{{ call }}", "hermes"},
      {"<tool_call>\n<function={{ name }}>", "qwen-xml"},
      {"{%- set begin = '<seed:tool_call>' %}", "seed"},
      {"{%- set begin = '<minimax:tool_call>' %}", "minimax"},
      {"'<TOOLCALL>['", "nemotron"},
      {"[TOOL_CALLS] [", "mistral"},
      {"[TOOL_CALLS]x[ARGS]", "mistral-args"},
      {"<|python_tag|>", "llama-3"},
      {"in the format {\"name\": function name, \"parameters\": d}", "llama-3"},
      {"<start_function_call>", "function-gemma"},
      {"<|tool_call>call:", "gemma-4"},
      {"<tool_call>{name}\n<arg_key>", "glm"},
      {"<｜tool▁calls▁begin｜>function<｜tool▁sep｜>' + name + '\n```json", "deepseek"},
      {"<｜tool▁calls▁begin｜>", "deepseek-v3.1"},
      {"<|tool_calls_section_begin|>", "kimi"},
      {"\"List of tools: [\"", "lfm2"},
      {"<|start|>assistant<|channel|>final<|message|>", "harmony"},
  };
  for (const auto& [source, name] : cases) {
    const CallFormat* format = call_format_of(source);
    ASSERT_TRUE(format) << source;
    EXPECT_STREQ(format->name, name);
  }
  EXPECT_FALSE(call_format_of("{{ messages }}"));
  EXPECT_FALSE(reasoning_format_of("{{ messages }}"));
}

// In which format models of a family call tools, by the mark in their publishers' templates.
struct FamilyFormat {
  const char *family, *sign, *format;
};
void PrintTo(const FamilyFormat& f, std::ostream* out) { *out << f.family << ": " << f.format; }

constexpr const char *kHermes = "\n<tool_call>\n",
                     *kQwenXml = "<tool_call>\n<function=", *kMistral = "[TOOL_CALLS] [",
                     *kMistralArgs = "[TOOL_CALLS]' + name + '[ARGS]", *kLfm2 = "<|tool_call_start|>",
                     *kGlm = "<tool_call>{name}\n<arg_key>", *kDeepSeek = "<｜tool▁calls▁begin｜>";
constexpr FamilyFormat kFamilies[] = {
    {"llama", "<|python_tag|>", "llama-3"},
    {"llama", kMistral, "mistral"},  // Mistral 7B is of this family
    {"mixtral", kMistral, "mistral"},
    {"ministral3", kMistralArgs, "mistral-args"},
    {"mistral4", kMistralArgs, "mistral-args"},
    {"qwen2", kHermes, "hermes"},
    {"qwen3", kHermes, "hermes"},
    {"qwen3_moe", kHermes, "hermes"},
    {"qwen3_moe", kQwenXml, "qwen-xml"},  // Qwen3 Coder
    {"qwen3_next", kHermes, "hermes"},
    {"qwen3_5", kQwenXml, "qwen-xml"},
    {"qwen3_5_moe", kQwenXml, "qwen-xml"},
    {"smollm3", kHermes, "hermes"},
    {"exaone4", kHermes, "hermes"},
    {"granite_hybrid", kHermes, "hermes"},
    {"gemma3", "<start_function_call>", "function-gemma"},
    {"gemma4", "<|tool_call>call:", "gemma-4"},
    {"glm4_moe", kGlm, "glm"},
    {"deepseek", "<｜tool▁calls▁begin｜>function<｜tool▁sep｜>' + name + '\n```json", "deepseek"},
    {"deepseek", kDeepSeek, "deepseek-v3.1"},
    {"deepseek", "<|tool_calls_section_begin|>", "kimi"},
    {"deepseek", kGlm, "glm"},  // GLM 4.7 Flash
    {"seed_oss", "<seed:tool_call>", "seed"},
    {"minimax_m2", "<minimax:tool_call>", "minimax"},
    {"nemotron_h", "<TOOLCALL>[", "nemotron"},
    {"nemotron_h", kQwenXml, "qwen-xml"},  // Nemotron 3
    {"lfm2", kLfm2, "lfm2"},
    {"lfm2_moe", kLfm2, "lfm2"},
    {"gpt_oss", "<|start|>assistant<|channel|>final<|message|>", "harmony"},
};

class FormatOfFamily : public testing::TestWithParam<FamilyFormat> {};

// The record is a part of what `doppler models` prints (tools/models_matrix).
TEST_P(FormatOfFamily, IsFoundInItsTemplate) {
  const auto& [family, sign, name] = GetParam();
  const CallFormat* format = call_format_of(sign);
  ASSERT_TRUE(format);
  EXPECT_STREQ(format->name, name);
  RecordProperty(std::string("shown-template-any-tools_") + name, std::string(family) + "|0|host");
}
INSTANTIATE_TEST_SUITE_P(Families, FormatOfFamily, testing::ValuesIn(kFamilies));

// The text that forces a call is the beginning of one.
TEST(CallFormat, AForcedCallIsRead) {
  for (const char* name :
       {"hermes", "qwen-xml", "seed", "minimax", "nemotron", "mistral", "mistral-args", "llama-3", "glm"}) {
    const CallFormat* format = call_format_named(name);
    OutputParser parser({.calls = format});
    EXPECT_EQ(shown({parser.push(format->forced("f"))}), "f") << name;
  }
  const char* const with_end[][2] = {
      {"deepseek", "{}"}, {"kimi", "{}"}, {"deepseek-v3.1", "{}"}, {"lfm2", ")"}, {"harmony", "{}"}};
  for (const auto& [name, end] : with_end) {
    const CallFormat* format = call_format_named(name);
    OutputParser parser({.calls = format, .tools = kTools});
    EXPECT_EQ(shown({parser.push(format->forced("f") + end)}), "f({})") << name;
  }
}

}  // namespace
}  // namespace doppler::openai
