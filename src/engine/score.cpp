#include "engine/score.h"

#include <algorithm>
#include <cmath>

namespace doppler::engine {

Task<Result<void>> score_tokens(model::DeviceModel& runner, std::span<const uint32_t> tokens, OnRows on_rows,
                                std::span<const uint32_t> types) {
  if (tokens.empty())
    co_return fail(ErrorKind::kInvalidInput, "No tokens were given; at least one is needed.");
  if (tokens.size() > runner.ctx_len()) {
    co_return fail(ErrorKind::kInvalidInput, "%zu tokens were given, but the context holds %u (--ctx).",
                   tokens.size(), runner.ctx_len());
  }
  for (const uint32_t token : tokens) {
    if (token >= runner.config().vocab_size && !runner.knows_image_token(token)) {
      co_return fail(ErrorKind::kInvalidInput, "Token %u is outside the vocabulary; allowed is 0 to %u.",
                     token, runner.config().vocab_size - 1);
    }
  }
  for (size_t at = 0; at < tokens.size();) {
    const auto most = static_cast<uint32_t>(std::min<size_t>(runner.chunk(), tokens.size() - at));
    const uint32_t count = runner.uncut_rows(tokens.subspan(at), most);
    const auto pos = static_cast<uint32_t>(at);
    DP_CO_TRY(const model::DeviceModel::Rows rows,
              co_await runner.logits(pos, tokens.subspan(at, count),
                                     types.empty() ? types : types.subspan(at, count)));
    on_rows(pos, count, rows);
    at += count;
  }
  co_return Result<void>();
}

double negative_log_likelihood(std::span<const float> logits, uint32_t token) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum) - static_cast<double>(logits[token]);
}

}  // namespace doppler::engine
