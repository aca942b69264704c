#include "openai/formats/formats.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

// The text after a name in a JSON object that ends with the arguments.
constexpr std::string_view kJsonArguments = "\", \"arguments\": ";
constexpr std::string_view kJsonParameters = "\", \"parameters\": ";

// The first row whose signs are in the template holds.
constexpr CallFormat kCallFormats[] = {
    {.name = "qwen-xml",
     .sign = "<function=",
     .opening = "<tool_call>",
     .make_reader = make_qwen_xml_reader,
     .before_name = "<tool_call>\n<function=",
     .behind_name = ">\n"},
    {.name = "seed",
     .opening = "<seed:tool_call>",
     .shows_special = true,
     .make_reader = make_seed_reader,
     .before_name = "<seed:tool_call>\n<function=",
     .behind_name = ">\n"},
    {.name = "minimax",
     .opening = "<minimax:tool_call>",
     .shows_special = true,
     .make_reader = make_minimax_reader,
     .before_name = "<minimax:tool_call>\n<invoke name=\"",
     .behind_name = "\">\n"},
    {.name = "nemotron",
     .opening = "<TOOLCALL>",
     .shows_special = true,
     .make_reader = make_nemotron_reader,
     .before_name = "<TOOLCALL>[{\"name\": \"",
     .behind_name = kJsonArguments,
     .closing = "}]</TOOLCALL>",
     .grammar_has_names = true},
    {.name = "glm",
     .sign = "<arg_key>",
     .opening = "<tool_call>",
     .make_reader = make_glm_reader,
     .before_name = "<tool_call>",
     .behind_name = "\n"},
    {.name = "hermes",
     .opening = "<tool_call>",
     .make_reader = make_hermes_reader,
     .before_name = "<tool_call>\n{\"name\": \"",
     .behind_name = kJsonArguments,
     .closing = "}\n</tool_call>",
     .grammar_has_names = true},
    {.name = "mistral-args",
     .sign = "[ARGS]",
     .opening = "[TOOL_CALLS]",
     .shows_special = true,
     .make_reader = make_mistral_reader,
     .before_name = "[TOOL_CALLS]",
     .behind_name = "[ARGS]",
     .closing = ""},
    {.name = "mistral",
     .opening = "[TOOL_CALLS]",
     .shows_special = true,
     .make_reader = make_mistral_reader,
     .before_name = "[TOOL_CALLS][{\"name\": \"",
     .behind_name = kJsonArguments,
     .closing = "}]",
     .grammar_has_names = true},
    {.name = "gemma-4",
     .opening = "<|tool_call>",
     .shows_special = true,
     .make_reader = make_gemma4_reader,
     .before_name = "<|tool_call>call:",
     .behind_name = "{"},
    {.name = "function-gemma",
     .opening = "<start_function_call>",
     .shows_special = true,
     .make_reader = make_function_gemma_reader,
     .before_name = "<start_function_call>call:",
     .behind_name = "{"},
    {.name = "llama-3",
     .opening = "<|python_tag|>",
     .opens_with_brace = true,
     .shows_special = true,
     .make_reader = make_llama3_reader,
     .before_name = "{\"name\": \"",
     .behind_name = kJsonParameters,
     .closing = "}",
     .grammar_has_names = true},
    {.name = "deepseek",
     .sign = "```json",
     .opening = "<｜tool▁calls▁begin｜>",
     .shows_special = true,
     .make_reader = make_deepseek_reader,
     .before_name = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .behind_name = "\n```json\n",
     .closing = "\n```",
     .grammar_has_names = true,
     .prepare = prepare_deepseek},
    {.name = "deepseek-v3.1",
     .opening = "<｜tool▁calls▁begin｜>",
     .shows_special = true,
     .make_reader = make_deepseek_reader,
     .before_name = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
     .behind_name = "<｜tool▁sep｜>",
     .closing = "",
     .prepare = prepare_deepseek},
    {.name = "kimi",
     .opening = "<|tool_calls_section_begin|>",
     .shows_special = true,
     .make_reader = make_kimi_reader,
     .before_name = "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
     .behind_name = ":0<|tool_call_argument_begin|>",
     .closing = ""},
    {.name = "lfm2",
     .opening = "<|tool_call_start|>",
     .shows_special = true,
     .make_reader = make_lfm2_reader,
     .before_name = "<|tool_call_start|>[",
     .behind_name = "(",
     .prepare = prepare_lfm2},
    {.name = "harmony",
     .sign = "<|channel|>",
     .opening = "<|start|>assistant",
     .shows_special = true,
     .make_reader = make_harmony_reader,
     .before_name = "<|channel|>commentary to=functions.",
     .behind_name = " <|constrain|>json<|message|>",
     .closing = "",
     .answer_opening = "<|channel|>final<|message|>",
     .prepare = prepare_harmony},
};
// Templates that call tools without showing the mark.
struct Sign {
  std::string_view text, format;
};
constexpr Sign kSigns[] = {
    {R"({"name": function name, "parameters":)", "llama-3"},  // of Llama 3.2
    {"List of tools: ", "lfm2"},
};

constexpr ReasoningFormat kReasoningFormats[] = {
    {{"<think>", "</think>"}, false},
    {{"[THINK]", "[/THINK]"}, true},
    {{"<|channel>thought\n", "<channel|>"}, true},
    {{"<seed:think>", "</seed:think>"}, true},
};
// The text by which a template shows that last mark.
constexpr std::string_view kGemma4Channel = "<|channel>";

}  // namespace

std::string CallFormat::forced(std::string_view tool) const {
  if (tool.empty()) return std::string(before_name);
  std::string text(tool);
  if (behind_name.starts_with("\", \"")) {  // in a JSON string
    const std::string quoted = to_text(Json(text));
    text = quoted.substr(1, quoted.size() - 2);
  }
  return std::string(before_name) + text + std::string(behind_name);
}

const CallFormat* call_format_of(std::string_view source) {
  for (const CallFormat& format : kCallFormats) {
    if (source.find(format.opening) != std::string_view::npos &&
        source.find(format.sign) != std::string_view::npos)
      return &format;
  }
  for (const Sign& sign : kSigns) {
    if (source.find(sign.text) != std::string_view::npos) return call_format_named(sign.format);
  }
  return nullptr;
}

const CallFormat* call_format_named(std::string_view name) {
  for (const CallFormat& format : kCallFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

const ReasoningFormat* reasoning_format_of(std::string_view source) {
  for (const ReasoningFormat& format : kReasoningFormats) {
    const bool is_gemma4 = format.marks.opening.starts_with(kGemma4Channel);
    const std::string_view opening = is_gemma4 ? kGemma4Channel : format.marks.opening;
    if (source.find(opening) != std::string_view::npos ||
        source.find(format.marks.closing) != std::string_view::npos)
      return &format;
  }
  return nullptr;
}

}  // namespace doppler::openai
