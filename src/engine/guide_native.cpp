#include "engine/guide_native.h"

#include <algorithm>

namespace doppler::engine {
namespace {

class GrammarGuide final : public Guide {
 public:
  GrammarGuide(guidance::Matcher matcher, std::vector<uint32_t> ends)
      : matcher_(std::move(matcher)), ends_(std::move(ends)) {}

  Result<std::vector<uint32_t>> allowed() override { return matcher_.allowed(); }
  Result<std::vector<uint32_t>> forced() override { return matcher_.forced(); }
  Result<bool> accept(uint32_t token) override {
    if (std::ranges::find(ends_, token) != ends_.end()) return false;
    DP_CHECK(matcher_.accept(token));
    return true;
  }
  std::unique_ptr<Guide> clone() const override {
    return std::make_unique<GrammarGuide>(matcher_.clone(), ends_);
  }

 private:
  guidance::Matcher matcher_;
  std::vector<uint32_t> ends_;
};

// Texts that follow others: what the tokenizer puts in front of a whole text is left out.
std::vector<uint32_t> tokens_behind(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  constexpr std::string_view kBefore = "\n";  // joins no token of what follows
  const auto ids = tokenizer.encode(tokenizer.strips_leading_space() ? std::string(kBefore).append(text)
                                                                     : std::string(text));
  if (!ids) return {};
  std::vector<uint32_t> out(ids->begin(), ids->end());
  if (!tokenizer.strips_leading_space()) return out;
  std::string before;
  while (!out.empty() && !before.ends_with(kBefore)) {
    before += tokenizer.token_bytes(static_cast<int32_t>(out.front()));
    out.erase(out.begin());
  }
  return out;
}

guidance::Vocabulary vocabulary_of(const std::shared_ptr<const tokenizer::Tokenizer>& shared,
                                   std::vector<uint32_t> ends) {
  using tokenizer::TokenType;
  const tokenizer::Tokenizer& tokenizer = *shared;
  guidance::Vocabulary out{
      .tokens = {}, .is_control = {}, .ends = std::move(ends), .tokenize = [shared](std::string_view text) {
        return tokens_behind(*shared, text);
      }};
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
    DP_TRY(guides_, guidance::Guides::create(vocabulary_of(tokenizer_, ends_)));
  }
  return guides_.get();
}

Result<std::shared_ptr<Guide>> ModelGuides::begin(const Grammar& grammar) {
  DP_TRY(guidance::Guides * of_model, guides());
  DP_TRY(guidance::Matcher matcher, of_model->begin(grammar));
  return std::make_shared<GrammarGuide>(std::move(matcher), ends_);
}

}  // namespace doppler::engine
