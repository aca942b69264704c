// Gemma: call:f{key:<escape>text<escape>,n:3}<end_function_call> of FunctionGemma, and the same with the marks of Gemma
// 4. Keys are bare, strings stand between two marks, the rest is JSON. A call is given out when it is whole.
#include "base/json.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kCall = "call:";
constexpr int kDeepest = 32;

struct GemmaMarks {
  std::string_view quote, closing;
};
constexpr GemmaMarks kFunctionGemma{"<escape>", "<end_function_call>"};
constexpr GemmaMarks kGemma4{"<|\"|>", "<tool_call|>"};

// Values as Gemma writes them. No value: the text is none.
class ValueParser {
 public:
  ValueParser(std::string_view text, std::string_view quote) : rest_(text), quote_(quote) {}

  std::optional<Json> object(int depth = 0) {
    if (depth > kDeepest || !eat("{")) return std::nullopt;
    Json out = Json::object();
    while (!eat("}")) {
      const size_t colon = rest_.find(':');
      if (colon == std::string_view::npos) return std::nullopt;
      std::string_view key = trim(rest_.substr(0, colon));
      if (key.starts_with(quote_) && key.ends_with(quote_) && key.size() >= 2 * quote_.size()) {
        key = key.substr(quote_.size(), key.size() - 2 * quote_.size());
      }
      rest_.remove_prefix(colon + 1);
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out[std::string(key)] = std::move(*item);
      if (!eat(",") && !rest_.starts_with('}')) return std::nullopt;
    }
    return out;
  }
  bool at_end() const { return trim(rest_).empty(); }

 private:
  std::optional<Json> value(int depth) {
    if (depth > kDeepest) return std::nullopt;
    skip_space();
    if (eat(quote_)) {
      const size_t end = rest_.find(quote_);
      if (end == std::string_view::npos) return std::nullopt;
      Json out = std::string(rest_.substr(0, end));
      rest_.remove_prefix(end + quote_.size());
      skip_space();
      return out;
    }
    if (rest_.starts_with('{')) return object(depth);
    if (eat("[")) {
      Json out = Json::array();
      while (!eat("]")) {
        auto item = value(depth + 1);
        if (!item) return std::nullopt;
        out.push_back(std::move(*item));
        if (!eat(",") && !rest_.starts_with(']')) return std::nullopt;
      }
      return out;
    }
    const size_t end = std::min(rest_.find_first_of(",}]"), rest_.size());
    const std::string_view word = trim(rest_.substr(0, end));
    rest_.remove_prefix(end);
    auto parsed = parse_json(word, "value");
    return parsed ? std::move(*parsed) : Json(std::string(word));
  }

  bool eat(std::string_view text) {
    skip_space();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    skip_space();
    return true;
  }
  void skip_space() {
    while (rest_.starts_with(' ') || rest_.starts_with('\n')) rest_.remove_prefix(1);
  }

  std::string_view rest_, quote_;
};

class GemmaReader : public CallReader {
 public:
  explicit GemmaReader(GemmaMarks marks) : marks_(marks) {}

  Taken take(char c, AnswerEvents& out) override {
    text_ += c;
    if (!text_.ends_with(marks_.closing)) return Taken::kMore;
    const std::string_view body =
        trim(std::string_view(text_).substr(0, text_.size() - marks_.closing.size()));
    const size_t brace = body.find('{');
    if (!body.starts_with(kCall) || brace == std::string_view::npos) return Taken::kRefused;
    const std::string_view name = trim(body.substr(kCall.size(), brace - kCall.size()));
    ValueParser parser(body.substr(brace), marks_.quote);
    const auto arguments = parser.object();
    if (!arguments || !parser.at_end() || name.empty()) return Taken::kRefused;
    out.add(AnswerEvent::Kind::kCall, name);
    out.add(AnswerEvent::Kind::kArguments, to_text(*arguments));
    has_begun_ = true;
    return Taken::kEnd;
  }
  bool has_begun() const override { return has_begun_; }

 private:
  GemmaMarks marks_;
  std::string text_;
  bool has_begun_ = false;
};

}  // namespace

std::unique_ptr<CallReader> make_function_gemma_reader(std::string_view) {
  return std::make_unique<GemmaReader>(kFunctionGemma);
}
std::unique_ptr<CallReader> make_gemma4_reader(std::string_view) {
  return std::make_unique<GemmaReader>(kGemma4);
}

}  // namespace doppler::openai
