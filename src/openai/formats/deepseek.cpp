// DeepSeek: between <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜> one call after the other. Each stands between
// <｜tool▁call▁begin｜> and <｜tool▁call▁end｜>: function<｜tool▁sep｜>f, a line feed and the arguments in a fence of V3 and
// R1, f<｜tool▁sep｜>{...} of V3.1. Kimi K2 has the same with marks of its own and functions.f:0 for a name.
#include "base/json.h"
#include "base/text.h"
#include "openai/formats/formats.h"
#include "openai/formats/json_call.h"

namespace doppler::openai {
namespace {

struct Marks {
  std::string_view begin, separator, end, closing;
  std::string_view prefix = {};  // of names, which a number follows
};
constexpr Marks kDeepSeek{"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
                          "<｜tool▁calls▁end｜>"};
constexpr Marks kKimi{"<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>",
                      "<|tool_calls_section_end|>", "functions."};
constexpr size_t kDeepseekMostNameBytes = 256;

class DeepSeekReader : public CallReader {
 public:
  explicit DeepSeekReader(Marks marks) : marks_(marks) {}

  Taken take(char c, AnswerEvents& out) override {
    switch (at_) {
      case At::kMark:
        return take_mark(c);
      case At::kHead:
        text_ += c;
        if (text_.ends_with(marks_.separator)) {
          text_.resize(text_.size() - marks_.separator.size());
          head_ = trim(std::exchange(text_, {}));
          at_ = At::kName;
        }
        return text_.size() > kDeepseekMostNameBytes ? Taken::kRefused : Taken::kMore;
      case At::kName:
        return take_name(c, out);
      case At::kArguments:
        return take_arguments(c, out);
    }
    return Taken::kRefused;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  enum class At : uint8_t { kMark, kHead, kName, kArguments };

  // The end of a fence belongs to no mark.
  Taken take_mark(char c) {
    if (text_.empty() && (c == ' ' || c == '\n' || c == '`')) return Taken::kMore;
    text_ += c;
    if (text_ == marks_.closing) return Taken::kEnd;
    if (text_ == marks_.begin || text_ == marks_.end) {
      at_ = text_ == marks_.begin ? At::kHead : At::kMark;
      text_.clear();
      return Taken::kMore;
    }
    for (const std::string_view mark : {marks_.begin, marks_.end, marks_.closing}) {
      if (mark.starts_with(text_)) return Taken::kMore;
    }
    return Taken::kRefused;
  }

  // If arguments follow the separator at once, the name was before it.
  Taken take_name(char c, AnswerEvents& out) {
    if (c != '{') {
      text_ += c;
      return text_.size() > kDeepseekMostNameBytes ? Taken::kRefused : Taken::kMore;
    }
    const std::string_view behind = trim(text_);
    std::string name(behind.empty() ? head_ : trim(behind.substr(0, behind.find_first_of("\n`"))));
    const std::string_view prefix = marks_.prefix;
    if (!prefix.empty() && name.starts_with(prefix))
      name = name.substr(prefix.size(), name.rfind(':') - prefix.size());
    if (name.empty()) return Taken::kRefused;
    out.add(AnswerEvent::Kind::kCall, name);
    has_begun_ = true;
    text_.clear();
    extent_ = {};
    at_ = At::kArguments;
    return take_arguments(c, out);
  }

  Taken take_arguments(char c, AnswerEvents& out) {
    if (extent_.take(c) == JsonExtent::Step::kLast) at_ = At::kMark;
    out.add(AnswerEvent::Kind::kArguments, std::string_view(&c, 1));
    return Taken::kMore;
  }

  const Marks marks_;
  At at_ = At::kMark;
  JsonExtent extent_;
  std::string text_, head_;
  bool has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_deepseek_reader(std::string_view) {
  return std::make_unique<DeepSeekReader>(kDeepSeek);
}
std::unique_ptr<CallReader> make_kimi_reader(std::string_view) {
  return std::make_unique<DeepSeekReader>(kKimi);
}

// Templates ask whether the content of a message with calls is none, and some want the arguments' text.
void prepare_deepseek(ChatFields& chat, std::string_view source) {
  const size_t arguments = source.rfind("arguments"), dumped = source.rfind("tojson");
  const bool takes_text = dumped == std::string_view::npos || dumped < arguments;
  for (Json& message : chat.messages) {
    if (!message.contains("tool_calls")) continue;
    if (message["content"] == "") message["content"] = nullptr;
    for (Json& call : message["tool_calls"]) {
      Json& value = call["function"]["arguments"];
      if (takes_text && !value.is_string()) value = to_text(value);
    }
  }
}

}  // namespace doppler::openai
