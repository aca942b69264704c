// Fuzz target: bodies that a server gets, and answers that models write. A body becomes a request or one sentence;
// calls and reasoning come out the same wherever the text was cut.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "openai/formats/formats.h"
#include "openai/served_request.h"

using namespace doppler;
using namespace doppler::openai;

namespace {

std::string shown(OutputParser parser, std::string_view text, size_t piece) {
  std::string out;
  AnswerEvent::Kind last = AnswerEvent::Kind::kText;
  const auto add = [&](const std::vector<AnswerEvent>& events) {
    for (const AnswerEvent& event : events) {
      if (event.kind != last || event.kind == AnswerEvent::Kind::kCall)
        out += "|" + std::to_string(static_cast<int>(event.kind));
      out += event.text;
      last = event.kind;
    }
  };
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    add(parser.push(text.substr(0, piece)));
  add(parser.finish());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto body = parse_json(text, "body")) {
    for (const Endpoint endpoint : {Endpoint::kChatCompletions, Endpoint::kCompletions}) {
      const auto request = read_served(endpoint, *body, {});
      if (!request && request.error().sentence().empty()) std::abort();
    }
  }
  const ReasoningFormat* reasoning = reasoning_format_of("<think>");
  for (const char* name : {"hermes", "qwen-xml", "mistral", "llama-3", "function-gemma", "gemma-4", "glm",
                           "deepseek", "kimi", "lfm2", "harmony"}) {
    const OutputParser::Setup setup{.calls = call_format_named(name), .reasoning = &reasoning->marks};
    if (shown(OutputParser(setup), text, text.size()) != shown(OutputParser(setup), text, 1)) std::abort();
  }
  return 0;
}
