#include "engine/guide_native.h"

#include <algorithm>

namespace doppler::engine {
namespace {

class GrammarGuide final : public Guide {
 public:
  GrammarGuide(guidance::Matcher matcher, std::vector<uint32_t> ends)
      : matcher_(std::move(matcher)), ends_(std::move(ends)) {}

  Result<std::vector<uint32_t>> allowed() override { return matcher_.allowed(); }
  Result<bool> accept(uint32_t token) override {
    if (std::ranges::find(ends_, token) != ends_.end()) return false;
    DP_CHECK(matcher_.accept(token));
    return true;
  }

 private:
  guidance::Matcher matcher_;
  std::vector<uint32_t> ends_;
};

guidance::Vocabulary vocabulary_of(const tokenizer::Tokenizer& tokenizer, std::vector<uint32_t> ends) {
  using tokenizer::TokenType;
  guidance::Vocabulary out{.tokens = {}, .is_control = {}, .ends = std::move(ends)};
  const auto count = static_cast<int32_t>(tokenizer.vocab_size());
  for (int32_t id = 0; id < count; ++id) {
    const TokenType type = tokenizer.token_type(id);
    out.tokens.emplace_back(type == TokenType::kUnused ? "" : tokenizer.token_bytes(id));
    out.is_control.push_back(type == TokenType::kControl || type == TokenType::kUnknown);
  }
  for (const uint32_t end : out.ends) {
    if (end >= out.tokens.size()) continue;
    // An end stands for no text, whatever its type, and must be spelled for the library.
    out.is_control[end] = true;
    if (out.tokens[end].empty()) out.tokens[end] = tokenizer.token_text(static_cast<int32_t>(end));
  }
  return out;
}

}  // namespace

Result<guidance::Guides*> ModelGuides::guides() {
  const std::lock_guard lock(mutex_);
  if (!guides_) {
    if (!tokenizer_) return fail(ErrorKind::kUnsupported, "The model has no tokenizer; a grammar needs one.");
    DP_TRY(guides_, guidance::Guides::create(vocabulary_of(*tokenizer_, ends_)));
  }
  return guides_.get();
}

Result<std::shared_ptr<Guide>> ModelGuides::begin(const Grammar& grammar) {
  DP_TRY(guidance::Guides * of_model, guides());
  DP_TRY(guidance::Matcher matcher, of_model->begin(grammar));
  return std::make_shared<GrammarGuide>(std::move(matcher), ends_);
}

}  // namespace doppler::engine
