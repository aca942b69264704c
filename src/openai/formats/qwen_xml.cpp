// Qwen Coder: <tool_call><function=f><parameter=key>value</parameter>...</function></tool_call>. Values are bare text;
// the tool's schema says which of them are strings, the others are JSON.
#include "base/json.h"
#include "openai/formats/bare_argument.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kFunction = "<function=", kParameter = "<parameter=",
                           kParameterEnd = "</parameter>", kFunctionEnd = "</function>",
                           kClosing = "</tool_call>";

class QwenXmlReader : public CallReader {
 public:
  explicit QwenXmlReader(std::string_view tools) : tools_(tool_list(tools)) {}

  Taken take(char c, AnswerEvents& out) override {
    text_ += c;
    switch (at_) {
      case At::kBefore:
        return take_mark(c);
      case At::kName:
        if (c != '>') return Taken::kMore;
        text_.pop_back();
        if (is_key_) {
          key_ = std::exchange(text_, {});
          at_ = At::kValue;
          return Taken::kMore;
        }
        name_ = std::exchange(text_, {});
        if (name_.empty()) return Taken::kRefused;
        out.add(AnswerEvent::Kind::kCall, name_);
        has_begun_ = true;
        at_ = At::kBefore;
        return Taken::kMore;
      case At::kValue:
        if (!text_.ends_with(kParameterEnd)) return Taken::kMore;
        text_.resize(text_.size() - kParameterEnd.size());
        out.add(AnswerEvent::Kind::kArguments,
                (count_++ == 0 ? "{" : ", ") + to_text(Json(key_)) + ": " + value());
        text_.clear();
        at_ = At::kBefore;
        return Taken::kMore;
      case At::kEnded:
        out.add(AnswerEvent::Kind::kArguments, count_ == 0 ? "{}" : "}");
        break;
    }
    return Taken::kEnd;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  enum class At : uint8_t { kBefore, kName, kValue, kEnded };

  // One of the marks that may come here, with space in front of it.
  Taken take_mark(char c) {
    if (text_.size() == 1 && (c == ' ' || c == '\n')) {
      text_.clear();
      return Taken::kMore;
    }
    const bool opens = text_ == (has_begun_ ? kParameter : kFunction);
    if (opens) {
      is_key_ = has_begun_;
      text_.clear();
      at_ = At::kName;
      return Taken::kMore;
    }
    if (has_begun_ && text_ == kFunctionEnd) {
      text_.clear();
      return Taken::kMore;
    }
    for (const std::string_view mark : {has_begun_ ? kParameter : kFunction, kFunctionEnd, kClosing}) {
      if (mark.starts_with(text_)) {
        // The last character of the closing mark ends the arguments.
        if (has_begun_ && mark == kClosing && text_.size() + 1 == kClosing.size()) at_ = At::kEnded;
        return Taken::kMore;
      }
    }
    return Taken::kRefused;
  }

  // As JSON. A line feed on each side belongs to the marks.
  std::string value() const {
    std::string_view text = text_;
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return bare_argument(tools_, name_, key_, text);
  }

  At at_ = At::kBefore;
  Json tools_;
  std::string text_, name_, key_;
  bool is_key_ = false, has_begun_ = false;
  uint32_t count_ = 0;  // parameters
};

}  // namespace

std::unique_ptr<CallReader> make_qwen_xml_reader(std::string_view tools) {
  return std::make_unique<QwenXmlReader>(tools);
}

}  // namespace doppler::openai
