#include "model/generation.h"

#include <algorithm>

#include "kernels/common/step_state.h"
#include "kernels/step/step.h"

namespace doppler::model {

Result<void> check_settings(const GenerationSettings& settings) {
  if (settings.stop_tokens.size() > kernels::kMaxStopTokens) {
    return fail(ErrorKind::kInvalidInput, "%zu stop tokens were given; at most %u are allowed.",
                settings.stop_tokens.size(), kernels::kMaxStopTokens);
  }
  if (settings.logit_bias.size() > kernels::kMaxLogitBias) {
    return fail(ErrorKind::kInvalidInput, "%zu logit biases were given; at most %u are allowed.",
                settings.logit_bias.size(), kernels::kMaxLogitBias);
  }
  return {};
}

PastTokens past_tokens(const GenerationSettings& settings, std::span<const uint32_t> last, uint32_t end,
                       uint32_t vocab_size) {
  PastTokens past{.counts = std::vector<uint32_t>((vocab_size + 3) / 4 * 4, 0),
                  .recent = std::vector<uint32_t>(kernels::kPenaltyRing, kernels::kNoToken),
                  .breakers = std::vector<uint32_t>(kernels::breaker_words(vocab_size), 0),
                  .more = {.mu = 2 * settings.sampling.mirostat_tau}};
  const size_t penalised = std::min<size_t>(last.size(), kernels::kPenaltyRing);
  for (size_t i = 0; i < penalised; ++i) {
    const uint32_t token = last[last.size() - penalised + i];
    if (token >= vocab_size) continue;  // of a picture
    past.recent[(end - penalised + i) % kernels::kPenaltyRing] = token;
    ++past.counts[token];
  }
  for (const uint32_t token : last.last(std::min<size_t>(last.size(), kernels::kDryHistory))) {
    past.more.history[past.more.count++ % kernels::kDryHistory] = token;
  }
  for (const uint32_t token : settings.dry_breakers) {
    if (token < vocab_size) past.breakers[token / 32] |= 1u << token % 32;
  }
  return past;
}

void keep_recent(std::vector<uint32_t>& recent, std::span<const uint32_t> tokens) {
  recent.insert(recent.end(), tokens.begin(), tokens.end());
  if (recent.size() > kRecentTokens) recent.erase(recent.begin(), recent.end() - kRecentTokens);
}

std::vector<uint32_t> mask_row(std::span<const uint32_t> allowed, uint32_t vocab_size) {
  const uint32_t words = kernels::mask_words(vocab_size);
  std::vector<uint32_t> row = {1};
  row.insert(row.end(), allowed.begin(),
             allowed.begin() + static_cast<ptrdiff_t>(std::min<size_t>(allowed.size(), words - 1)));
  row.resize(words);
  return row;
}

}  // namespace doppler::model
