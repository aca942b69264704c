// Shows the events of an answer as text, and has a tool. For tests.
#pragma once

#include <string>
#include <vector>

#include "openai/formats/output_parser.h"

namespace doppler::openai {

inline constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}])";

// Writes "text|<think>reasoning|f(arguments)", in the order of the events.
inline std::string shown(const std::vector<std::vector<AnswerEvent>>& pushes) {
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

}  // namespace doppler::openai
