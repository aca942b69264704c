#include "openai/formats/formats.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kDeepSeekOpening = "<｜tool▁calls▁begin｜>";

std::string quoted(std::string_view name) { return to_text(Json(std::string(name))); }

// {"name": "f", "arguments": up to the value, or up to the name's first letter.
std::string json_opening(std::string_view name, std::string_view arguments) {
  if (name.empty()) return R"({"name": ")";
  return R"({"name": )" + quoted(name) + ", \"" + std::string(arguments) + "\": ";
}

std::string force_hermes(std::string_view name) { return "<tool_call>\n" + json_opening(name, "arguments"); }
std::string force_qwen_xml(std::string_view name) {
  return "<tool_call>\n<function=" + std::string(name) + (name.empty() ? "" : ">\n");
}
std::string force_seed(std::string_view name) {
  return "<seed:tool_call>\n<function=" + std::string(name) + (name.empty() ? "" : ">\n");
}
std::string force_minimax(std::string_view name) {
  return "<minimax:tool_call>\n<invoke name=\"" + std::string(name) + (name.empty() ? "" : "\">\n");
}
std::string force_nemotron(std::string_view name) { return "<TOOLCALL>[" + json_opening(name, "arguments"); }
std::string force_llama3(std::string_view name) { return json_opening(name, "parameters"); }
std::string force_mistral(std::string_view name) { return "[TOOL_CALLS][" + json_opening(name, "arguments"); }
std::string force_mistral_args(std::string_view name) {
  return "[TOOL_CALLS]" + std::string(name) + (name.empty() ? "" : "[ARGS]");
}
std::string force_function_gemma(std::string_view name) {
  return "<start_function_call>call:" + std::string(name) + (name.empty() ? "" : "{");
}
std::string force_gemma4(std::string_view name) {
  return "<|tool_call>call:" + std::string(name) + (name.empty() ? "" : "{");
}
// A line feed ends the name.
std::string force_glm(std::string_view name) {
  return "<tool_call>" + std::string(name) + (name.empty() ? "" : "\n");
}
std::string force_deepseek(std::string_view name) {
  return std::string(kDeepSeekOpening) + "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + std::string(name) +
         (name.empty() ? "" : "\n```json\n");
}
std::string force_deepseek_v31(std::string_view name) {
  return std::string(kDeepSeekOpening) + "<｜tool▁call▁begin｜>" + std::string(name) +
         (name.empty() ? "" : "<｜tool▁sep｜>");
}
std::string force_kimi(std::string_view name) {
  return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + std::string(name) +
         (name.empty() ? "" : ":0<|tool_call_argument_begin|>");
}
std::string force_lfm2(std::string_view name) {
  return "<|tool_call_start|>[" + std::string(name) + (name.empty() ? "" : "(");
}
std::string force_harmony(std::string_view name) {
  return "<|channel|>commentary to=functions." + std::string(name) +
         (name.empty() ? "" : " <|constrain|>json<|message|>");
}

constexpr const char* kJsonArguments = "\", \"arguments\": ";

// The first row whose signs are in the template holds.
constexpr CallFormat kCallFormats[] = {
    {"qwen-xml", "<function=", "<tool_call>", false, false, make_qwen_xml_reader, force_qwen_xml},
    {"seed", "", "<seed:tool_call>", false, true, make_seed_reader, force_seed},
    {"minimax", "", "<minimax:tool_call>", false, true, make_minimax_reader, force_minimax},
    {"nemotron", "", "<TOOLCALL>", false, true, make_nemotron_reader, force_nemotron, kJsonArguments,
     "}]</TOOLCALL>"},
    {"glm", "<arg_key>", "<tool_call>", false, false, make_glm_reader, force_glm},
    {"hermes", "", "<tool_call>", false, false, make_hermes_reader, force_hermes, kJsonArguments,
     "}\n</tool_call>"},
    {"mistral-args", "[ARGS]", "[TOOL_CALLS]", false, true, make_mistral_reader, force_mistral_args, nullptr,
     ""},
    {"mistral", "", "[TOOL_CALLS]", false, true, make_mistral_reader, force_mistral, kJsonArguments, "}]"},
    {"gemma-4", "", "<|tool_call>", false, true, make_gemma4_reader, force_gemma4},
    {"function-gemma", "", "<start_function_call>", false, true, make_function_gemma_reader,
     force_function_gemma},
    {"llama-3", "", "<|python_tag|>", true, true, make_llama3_reader, force_llama3,
     "\", \"parameters\": ", "}"},
    {"deepseek",
     "```json",
     kDeepSeekOpening,
     false,
     true,
     make_deepseek_reader,
     force_deepseek,
     "\n```json\n",
     "\n```",
     {},
     prepare_deepseek},
    {"deepseek-v3.1",
     "",
     kDeepSeekOpening,
     false,
     true,
     make_deepseek_reader,
     force_deepseek_v31,
     nullptr,
     "",
     {},
     prepare_deepseek},
    {"kimi", "", "<|tool_calls_section_begin|>", false, true, make_kimi_reader, force_kimi, nullptr, ""},
    {"lfm2",
     "",
     "<|tool_call_start|>",
     false,
     true,
     make_lfm2_reader,
     force_lfm2,
     nullptr,
     nullptr,
     {},
     prepare_lfm2},
    {"harmony", "<|channel|>", "<|start|>assistant", false, true, make_harmony_reader, force_harmony, nullptr,
     "", "<|channel|>final<|message|>", prepare_harmony},
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
// How that last mark is found in a template.
constexpr std::string_view kGemma4Channel = "<|channel>";

}  // namespace

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
