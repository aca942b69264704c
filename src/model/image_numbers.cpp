#include "model/image_numbers.h"

#include <utility>

#include "base/text.h"

namespace doppler::model {
namespace {

// Pictures that are remembered, before those that nobody uses are forgotten. A picture that is forgotten and comes
// again gets other numbers.
constexpr size_t kMostKnown = 4096;

}  // namespace

Result<std::shared_ptr<const HeldImage>> ImageNumbers::add(images::PreparedImage prepared,
                                                           const std::string& key) {
  const uint32_t tokens = prepared.tokens();
  if (tokens == 0 || tokens > most_tokens_) {
    return fail(ErrorKind::kUnsupported, "A picture has %u tokens; this model was loaded for up to %u.",
                tokens, most_tokens_);
  }
  const images::Size tile = prepared.tiles.front().size;
  return number(key, {.first_token = 0,
                      .prepared = std::move(prepared),
                      .rows = tile.height / edge_,
                      .columns = tile.width / edge_});
}

Result<std::shared_ptr<const HeldImage>> ImageNumbers::add_prompt(std::span<const uint32_t> tokens) {
  std::string key = "prompt";
  for (const uint32_t token : tokens) key += format_text(" %u", token);
  return number(key, {.first_token = 0, .prepared = {}, .prompt = {tokens.begin(), tokens.end()}});
}

Result<std::shared_ptr<const HeldImage>> ImageNumbers::number(const std::string& key, HeldImage held) {
  const auto known = known_.find(key);
  if (known != known_.end()) {
    if (auto same = known->second.held.lock()) return same;
  }
  const uint32_t tokens = held.tokens();
  if (known == known_.end() && tokens > kEndImageTokens - next_token_) {
    return fail(ErrorKind::kOutOfMemory, "Too many pictures were shown to this model; load it again.");
  }
  held.first_token =
      known != known_.end() ? known->second.first_token : std::exchange(next_token_, next_token_ + tokens);
  auto shared = std::make_shared<const HeldImage>(std::move(held));
  if (known_.size() >= kMostKnown)
    std::erase_if(known_, [](const auto& each) { return each.second.held.expired(); });
  known_[key] = {shared->first_token, shared};
  return shared;
}

}  // namespace doppler::model
