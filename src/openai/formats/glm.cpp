// GLM 4.5 to 4.7: <tool_call>f, then <arg_key>key</arg_key><arg_value>value</arg_value> for each argument, with line
// feeds between them or none, </tool_call>. Values are bare text.
#include "base/json.h"
#include "base/text.h"
#include "openai/formats/bare_argument.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kKey = "<arg_key>", kKeyEnd = "</arg_key>", kGlmValue = "<arg_value>",
                           kValueEnd = "</arg_value>", kGlmClosing = "</tool_call>";

class GlmReader : public CallReader {
 public:
  explicit GlmReader(std::string_view tools) : tools_(tool_list(tools)) {}

  Taken take(char c, AnswerEvents& out) override {
    switch (at_) {
      case At::kName:
        return take_name(c, out);
      case At::kMark:
        return take_mark(c, out);
      case At::kInKey:
        text_ += c;
        if (text_.ends_with(kKeyEnd)) {
          key_ = trim(std::string_view(text_).substr(0, text_.size() - kKeyEnd.size()));
          begin_mark();
        }
        break;
      case At::kInValue:
        text_ += c;
        if (text_.ends_with(kValueEnd)) {
          text_.resize(text_.size() - kValueEnd.size());
          out.add(AnswerEvent::Kind::kArguments, (count_++ == 0 ? "{" : ", ") + to_text(Json(key_)) + ": " +
                                                     bare_argument(tools_, name_, key_, text_));
          begin_mark();
        }
        break;
    }
    return Taken::kMore;
  }
  bool has_begun() const override { return at_ != At::kName; }

 private:
  enum class At : uint8_t { kName, kMark, kInKey, kInValue };

  void begin_mark() {
    text_.clear();
    at_ = At::kMark;
  }

  // It ends with its line or with the first mark.
  Taken take_name(char c, AnswerEvents& out) {
    if (c != '\n' && c != '<') {
      text_ += c;
      return c == '{' ? Taken::kRefused : Taken::kMore;
    }
    name_ = trim(text_);
    if (name_.empty()) return c == '\n' ? Taken::kMore : Taken::kRefused;
    out.add(AnswerEvent::Kind::kCall, name_);
    begin_mark();
    return take_mark(c, out);
  }

  Taken take_mark(char c, AnswerEvents& out) {
    if (text_.empty() && (c == ' ' || c == '\n')) return Taken::kMore;
    text_ += c;
    if (text_ == kGlmClosing) {
      out.add(AnswerEvent::Kind::kArguments, count_ == 0 ? "{}" : "}");
      return Taken::kEnd;
    }
    if (text_ == kKey || text_ == kGlmValue) {
      at_ = text_ == kKey ? At::kInKey : At::kInValue;
      text_.clear();
      return Taken::kMore;
    }
    for (const std::string_view mark : {kKey, kGlmValue, kGlmClosing}) {
      if (mark.starts_with(text_)) return Taken::kMore;
    }
    return Taken::kRefused;
  }

  At at_ = At::kName;
  Json tools_;
  std::string text_, name_, key_;
  uint32_t count_ = 0;  // arguments
};

}  // namespace

std::unique_ptr<CallReader> make_glm_reader(std::string_view tools) {
  return std::make_unique<GlmReader>(tools);
}

}  // namespace doppler::openai
