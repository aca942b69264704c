// Model::embed and Model::rerank (include/doppler/doppler.h) over embed.h.
#include "engine/api_impl.h"
#include "engine/embed.h"

namespace doppler {

Result<Embedding> Model::embed(std::string_view text, const EmbedOptions& options) {
  DP_TRY(const std::vector<int32_t> ids, tokenize(text, options.add_special, /*parse_special=*/false));
  return embed(ids, options);
}

Result<Embedding> Model::embed(std::span<const int32_t> tokens, const EmbedOptions& options) {
  model::DeviceModel& runner = *impl_->loaded->runner;
  DP_TRY(std::vector<uint32_t> ids, Impl::checked_ids(tokens));
  return gpu::run_to_completion(*impl_->device, engine::embed(runner, std::move(ids), options));
}

Result<float> Model::rerank(std::string_view query, std::string_view text, uint32_t* tokens) {
  DP_TRY(const engine::Score score,
         gpu::run_to_completion(*impl_->device, engine::rerank_score(*impl_->loaded, query, text)));
  if (tokens) *tokens = score.tokens;
  return score.value;
}

}  // namespace doppler
