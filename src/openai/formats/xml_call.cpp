// Calls as XML: Qwen Coder's <tool_call><function=f><parameter=key>value</parameter>...</function></tool_call>;
// Seed-OSS has the same after marks of its own. MiniMax has <invoke name="f"><parameter
// name="key">value</parameter>...</invoke>, several between one pair of marks. Values are bare text; the tool's schema
// says which values are strings, the others are JSON.
#include "base/json.h"
#include "openai/formats/bare_argument.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

struct XmlMarks {
  std::string_view function, parameter, name_end, function_end, closing;
};
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr XmlMarks kQwen{"<function=", "<parameter=", ">", "</function>", "</tool_call>"};
constexpr XmlMarks kSeed{"<function=", "<parameter=", ">", "</function>", "</seed:tool_call>"};
constexpr XmlMarks kMiniMax{"<invoke name=\"", "<parameter name=\"", "\">", "</invoke>",
                            "</minimax:tool_call>"};

class XmlCallReader : public CallReader {
 public:
  XmlCallReader(const XmlMarks& marks, std::string_view tools) : marks_(marks), tools_(tool_list(tools)) {}

  Taken take(char c, AnswerEvents& out) override {
    text_ += c;
    switch (at_) {
      case At::kBetween:
        return take_mark(c, out);
      case At::kName:
        return cut_off(marks_.name_end) ? take_name(out) : Taken::kMore;
      case At::kValue:
        if (!cut_off(kParameterEnd)) return Taken::kMore;
        out.add(AnswerEvent::Kind::kArguments,
                (count_++ == 0 ? "{" : ", ") + to_text(Json(key_)) + ": " + value());
        return go_to(At::kBetween);
    }
    return Taken::kRefused;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  enum class At : uint8_t { kBetween, kName, kValue };

  Taken go_to(At at) {
    text_.clear();
    at_ = at;
    return Taken::kMore;
  }

  bool cut_off(std::string_view end) {
    if (!text_.ends_with(end)) return false;
    text_.resize(text_.size() - end.size());
    return true;
  }

  // One of the marks that may come here, perhaps after space.
  Taken take_mark(char c, AnswerEvents& out) {
    if (text_.size() == 1 && (c == ' ' || c == '\n')) return go_to(At::kBetween);
    const std::string_view opening = is_open_ ? marks_.parameter : marks_.function;
    if (text_ == opening) return go_to(At::kName);
    if (is_open_ && text_ == marks_.function_end) {
      end_arguments(out);
      return go_to(At::kBetween);
    }
    if (has_begun_ && text_ == marks_.closing) {
      if (is_open_) end_arguments(out);
      return Taken::kEnd;
    }
    const bool may_go_on = opening.starts_with(text_) ||
                           (is_open_ && marks_.function_end.starts_with(text_)) ||
                           (has_begun_ && marks_.closing.starts_with(text_));
    return may_go_on ? Taken::kMore : Taken::kRefused;
  }

  Taken take_name(AnswerEvents& out) {
    if (is_open_) {
      key_ = text_;
      return go_to(At::kValue);
    }
    if (text_.empty()) return Taken::kRefused;
    name_ = text_;
    out.add(AnswerEvent::Kind::kCall, name_);
    has_begun_ = is_open_ = true;
    return go_to(At::kBetween);
  }

  void end_arguments(AnswerEvents& out) {
    out.add(AnswerEvent::Kind::kArguments, count_ == 0 ? "{}" : "}");
    count_ = 0;
    is_open_ = false;
  }

  // As JSON. A line feed on each side belongs to the marks.
  std::string value() const {
    std::string_view text = text_;
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return bare_argument(tools_, name_, key_, text);
  }

  const XmlMarks& marks_;
  At at_ = At::kBetween;
  Json tools_;
  std::string text_, name_, key_;
  bool is_open_ = false, has_begun_ = false;  // a call; any call
  uint32_t count_ = 0;                        // parameters of the open call
};

}  // namespace

std::unique_ptr<CallReader> make_qwen_xml_reader(std::string_view tools) {
  return std::make_unique<XmlCallReader>(kQwen, tools);
}
std::unique_ptr<CallReader> make_seed_reader(std::string_view tools) {
  return std::make_unique<XmlCallReader>(kSeed, tools);
}
std::unique_ptr<CallReader> make_minimax_reader(std::string_view tools) {
  return std::make_unique<XmlCallReader>(kMiniMax, tools);
}

}  // namespace doppler::openai
