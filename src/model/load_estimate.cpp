#include "model/load_estimate.h"

#include <algorithm>

#include "families/families.h"
#include "kernels/variant.h"

namespace doppler::model {

void fill_defaults(RunnerOptions& options, const formats::ModelConfig& config) {
  if (options.ctx_len == 0) options.ctx_len = std::min(config.ctx_len, kDefaultCtxLen);
  if (options.chunk == 0) options.chunk = kDefaultChunk;
  options.chunk = std::min(options.chunk, options.ctx_len);
}

formats::LayoutPolicy weight_layout_policy(const gpu::Caps& caps, const kernels::Policy& policy) {
  const bool dp4a = kernels::refuse_by_device(kernels::Lane::kDp4a, kernels::kNeedDp4a, caps, policy).empty();
  return {.exact = policy.name == "exact", .tiles = dp4a};
}

Result<LoadEstimate> estimate_load(const formats::Checkpoint& checkpoint, RunnerOptions options,
                                   const gpu::Caps& caps) {
  LoadEstimate estimate;
  DP_TRY(estimate.config, formats::read_config(checkpoint));
  DP_CHECK(families::check_has_forward_pass(estimate.config));
  fill_defaults(options, estimate.config);
  estimate.ctx_len = options.ctx_len;
  estimate.chunk = options.chunk;
  estimate.cache_format = options.cache_format;
  estimate.memory = estimate_memory(estimate.config, checkpoint, weight_layout_policy(caps, options.policy),
                                    estimate.ctx_len, estimate.chunk, options.cache_format);
  return estimate;
}

}  // namespace doppler::model
