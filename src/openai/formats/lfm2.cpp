// LFM2: <|tool_call_start|>[f(a="b", n=3), g()]<|tool_call_end|>, calls as Python writes them. A call is given out when
// it is whole. If the conversation asks for JSON, [{"name": "f", "arguments": {...}}] stands between these marks.
#include "base/json.h"
#include "openai/formats/formats.h"
#include "openai/formats/json_call.h"
#include "openai/formats/python_call.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kLfm2Opening = "<|tool_call_start|>", kLfm2Closing = "<|tool_call_end|>";

class Lfm2Reader : public CallReader {
 public:
  Taken take(char c, AnswerEvents& out) override {
    const bool is_space = c == ' ' || c == '\n';
    switch (at_) {
      case At::kList:
        if (is_space) return Taken::kMore;
        at_ = At::kBetween;
        return c == '[' ? Taken::kMore : Taken::kRefused;
      case At::kBetween:
        if (is_space || c == ',') return Taken::kMore;
        at_ = c == ']' ? At::kBehind : c == '{' ? At::kJson : At::kPython;
        json_ = {};
        python_ = {};
        return c == ']' ? Taken::kMore : take(c, out);
      case At::kJson:
        return went(json_.take(c, out), json_.has_begun());
      case At::kPython:
        return went(python_.take(c, out), false);
      case At::kBehind:
        break;
    }
    if (closing_.empty() && is_space) return Taken::kMore;
    closing_ += c;
    if (closing_ == kLfm2Closing) return Taken::kEnd;
    return kLfm2Closing.starts_with(closing_) ? Taken::kMore : Taken::kRefused;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  enum class At : uint8_t { kList, kBetween, kJson, kPython, kBehind };

  Taken went(Taken taken, bool has_begun) {
    has_begun_ |= has_begun || taken == Taken::kEnd;
    if (taken != Taken::kEnd) return taken;
    at_ = At::kBetween;
    return Taken::kMore;
  }

  At at_ = At::kList;
  JsonCall json_;
  PythonCall python_;
  std::string closing_;
  bool has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_lfm2_reader(std::string_view) { return std::make_unique<Lfm2Reader>(); }

// Most of the templates show only the content of an earlier answer: its calls become a part of that.
void prepare_lfm2(ChatFields& chat, std::string_view source) {
  const bool shows_calls = source.find("tool_calls") != std::string_view::npos;
  for (Json& message : chat.messages) {
    if (message.contains("reasoning_content")) message["thinking"] = message["reasoning_content"];
    if (shows_calls || !message.contains("tool_calls")) continue;
    std::string calls;
    for (const Json& call : message["tool_calls"])
      calls += (calls.empty() ? "" : ", ") + python_call(call["function"]);
    const auto content = get_string(message, "content");
    message["content"] = (content ? content->value_or("") : "") + std::string(kLfm2Opening) + "[" + calls +
                         "]" + std::string(kLfm2Closing);
  }
}

}  // namespace doppler::openai
