// Mistral: [TOOL_CALLS][{"name": "f", "arguments": {...}}, ...]. Later models write [TOOL_CALLS]f[ARGS]{...}, each call
// after a mark of its own and with [CALL_ID] and an id between, which is not used. Nemotron writes such a list between
// <TOOLCALL> and </TOOLCALL>.
#include "openai/formats/formats.h"
#include "openai/formats/json_call.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kMistralArguments = "[ARGS]";
constexpr std::string_view kId = "[CALL_ID]";
constexpr std::string_view kNemotronClosing = "</TOOLCALL>";
constexpr size_t kMostNameBytes = 256;

class MistralReader : public CallReader {
 public:
  // closing: the mark after the list; empty: there is none.
  explicit MistralReader(std::string_view closing = {}) : closing_(closing) {}

  Taken take(char c, AnswerEvents& out) override {
    switch (at_) {
      case At::kFirst:
        if (c == ' ' || c == '\n') return Taken::kMore;
        at_ = c == '[' ? At::kList : At::kName;
        return c == '[' ? Taken::kMore : take_name(c, out);
      case At::kList:
        return take_list(c, out);
      case At::kName:
        return take_name(c, out);
      case At::kInArguments:
        return take_arguments(c, out);
      case At::kClosing:
        return take_closing(c);
    }
    return Taken::kRefused;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  enum class At : uint8_t { kFirst, kList, kName, kInArguments, kClosing };

  Taken take_list(char c, AnswerEvents& out) {
    if (is_between_) {
      if (c == ']') {
        at_ = At::kClosing;
        return closing_.empty() ? Taken::kEnd : Taken::kMore;
      }
      if (c == ' ' || c == '\n' || c == ',') return Taken::kMore;
      call_ = {};
      is_between_ = false;
    }
    const Taken taken = call_.take(c, out);
    has_begun_ |= call_.has_begun();
    is_between_ = taken == Taken::kEnd;
    return is_between_ ? Taken::kMore : taken;
  }

  Taken take_closing(char c) {
    if ((c == ' ' || c == '\n') && closing_.starts_with('<')) return Taken::kMore;  // space before the mark
    if (!closing_.starts_with(c)) return Taken::kRefused;
    closing_.remove_prefix(1);
    return closing_.empty() ? Taken::kEnd : Taken::kMore;
  }

  Taken take_name(char c, AnswerEvents& out) {
    const bool opens = c == '{';
    if (!opens) name_ += c;
    if (!opens && !name_.ends_with(kMistralArguments)) {
      return name_.size() > kMostNameBytes ? Taken::kRefused : Taken::kMore;
    }
    if (!opens) name_.resize(name_.size() - kMistralArguments.size());
    name_.resize(std::min(name_.size(), name_.find(kId)));
    while (name_.ends_with(' ') || name_.ends_with('\n')) name_.pop_back();
    if (name_.empty()) return Taken::kRefused;
    out.add(AnswerEvent::Kind::kCall, name_);
    has_begun_ = true;
    at_ = At::kInArguments;
    return opens ? take_arguments(c, out) : Taken::kMore;
  }

  Taken take_arguments(char c, AnswerEvents& out) {
    if (!extent_.has_begun() && (c == ' ' || c == '\n')) return Taken::kMore;
    const JsonExtent::Step step = extent_.take(c);
    if (step == JsonExtent::Step::kBehind || extent_.first() != '{') return Taken::kRefused;
    out.add(AnswerEvent::Kind::kArguments, std::string_view(&c, 1));
    return step == JsonExtent::Step::kLast ? Taken::kEnd : Taken::kMore;
  }

  At at_ = At::kFirst;
  std::string_view closing_;  // the part of the mark that is still to come
  JsonCall call_;
  JsonExtent extent_;
  std::string name_;
  bool is_between_ = true, has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_mistral_reader(std::string_view) {
  return std::make_unique<MistralReader>();
}
std::unique_ptr<CallReader> make_nemotron_reader(std::string_view) {
  return std::make_unique<MistralReader>(kNemotronClosing);
}

}  // namespace doppler::openai
