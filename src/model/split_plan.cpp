#include "model/split_plan.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "families/families.h"
#include "model/recurrent_states.h"

namespace doppler::model {
namespace {

Unexpected refuse_split(const char* what) {
  return fail(ErrorKind::kUnsupported, "The layers of a model cannot lie on several devices with %s.", what);
}

Result<void> check_options(const RunnerOptions& options, const formats::ModelConfig& config, size_t devices) {
  if (formats::is_embedding_model(config)) return refuse_split("models that give embeddings or scores");
  if (options.expert_bytes != 0) return refuse_split("paged experts (--expert-memory)");
  if (options.layer_table_on_host) return refuse_split("embeddings on the host (--layer-table-on-host)");
  if (options.adapters.slots != 0) return refuse_split("adapters (--lora)");
  if (options.layers != 0) return refuse_split("some layers left out");
  if (options.drafting == Drafting::kNext)
    return refuse_split("drafts by the next-token layer (--draft next)");
  if (config.n_layers >= devices) return {};
  return fail(ErrorKind::kInvalidInput, "%zu devices were given for a model of %u layers; allowed are %u.",
              devices, config.n_layers, config.n_layers);
}

// Leaves out the features that parts do not have yet.
void leave_out(RunnerOptions& options) {
  if (options.policy.allows(kernels::Lane::kPersistent)) {
    log(LogLevel::kWarning, "The lane persistent is left out, since the layers lie on several devices.");
  }
  options.images = false;
  options.drafting = Drafting::kOff;
}

// The smallest of what each device could have, so that all agree.
Result<void> fill_common(SplitPlan& plan, const formats::Checkpoint& checkpoint,
                         std::span<const gpu::Caps* const> devices) {
  RunnerOptions& common = plan.options;
  if (common.max_sequences == 0) return {};
  const auto fill = [&](RunnerOptions asked) -> Result<std::vector<RunnerOptions>> {
    std::vector<RunnerOptions> filled;
    for (size_t i = 0; i < devices.size(); ++i) {
      formats::ModelConfig config = plan.config;
      config.part = plan.shares[i].layers;
      RunnerOptions& own = filled.emplace_back(asked);
      DP_CHECK_WHILE(fill_pool(own, config, checkpoint, *devices[i]), "sizing the cache of device %zu", i);
    }
    return filled;
  };
  const auto least = [](const std::vector<RunnerOptions>& all, uint32_t RunnerOptions::* field) {
    return (*std::ranges::min_element(all, {}, field)).*field;
  };
  DP_TRY(std::vector<RunnerOptions> filled, fill(common));
  if (least(filled, &RunnerOptions::window_tokens) == 0) {  // one device has one pool: then all do
    common.rings = false;
    DP_TRY(filled, fill(common));
  }
  common.block_len = filled[0].block_len;
  common.pool_tokens = least(filled, &RunnerOptions::pool_tokens);
  common.window_tokens = least(filled, &RunnerOptions::window_tokens);
  common.checkpoints = UINT32_MAX;
  for (size_t i = 0; i < filled.size(); ++i) {
    formats::ModelConfig config = plan.config;
    config.part = plan.shares[i].layers;
    if (state_bytes(config) != 0) common.checkpoints = std::min(common.checkpoints, filled[i].checkpoints);
  }
  if (common.checkpoints == UINT32_MAX) common.checkpoints = 0;
  return {};
}

}  // namespace

std::vector<formats::LayerRange> deal_layers(std::span<const uint64_t> layers,
                                             std::span<const uint64_t> rooms) {
  const size_t n = layers.size(), devices = rooms.size();
  std::vector<double> sums(n + 1, 0);  // bytes of the layers before
  for (size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + static_cast<double>(layers[i]);
  // best[d][i]: how full the fullest of the first d devices is with the first i layers; from: where the last begins.
  std::vector best(devices + 1, std::vector<double>(n + 1, INFINITY));
  std::vector from(devices + 1, std::vector<size_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t d = 1; d <= devices; ++d) {
    for (size_t end = d; end <= n; ++end) {
      for (size_t first = d - 1; first < end; ++first) {
        const double own =
            (sums[end] - sums[first]) / static_cast<double>(std::max<uint64_t>(1, rooms[d - 1]));
        const double fullest = std::max(best[d - 1][first], own);
        if (fullest >= best[d][end]) continue;
        best[d][end] = fullest;
        from[d][end] = first;
      }
    }
  }
  std::vector<formats::LayerRange> out(devices);
  for (size_t d = devices, end = n; d > 0; end = from[d][end], --d) {
    out[d - 1] = {static_cast<uint32_t>(from[d][end]), static_cast<uint32_t>(end)};
  }
  return out;
}

Result<WholeModel> whole_model(const formats::Checkpoint& checkpoint, const RunnerOptions& options,
                               std::span<const gpu::Caps* const> devices) {
  DP_TRY(const formats::ModelConfig config, formats::read_config(checkpoint));
  DP_CHECK(families::check_has_forward_pass(config));
  WholeModel whole{.fits = true, .writes_text = !formats::is_embedding_model(config)};
  for (const gpu::Caps* const caps : devices) {
    RunnerOptions own = options;
    fill_defaults(own, config, *caps);
    const MemoryEstimate memory = estimate_of(own, config, checkpoint, *caps,
                                              {.ctx_len = own.ctx_len, .ring_len = ring_len_of(own, config)});
    whole.has_experts = memory.expert_bytes != 0;
    whole.fits = whole.fits && check_memory(memory, *caps, own.ctx_len);
  }
  return whole;
}

Result<SplitPlan> plan_split(const formats::Checkpoint& checkpoint, RunnerOptions options,
                             std::span<const gpu::Caps* const> devices) {
  SplitPlan plan;
  DP_TRY(plan.config, formats::read_config(checkpoint));
  DP_CHECK(families::check_has_forward_pass(plan.config));
  DP_CHECK(check_options(options, plan.config, devices.size()));
  leave_out(options);
  plan.config.next_layers = 0;
  for (const gpu::Caps* const caps : devices) {
    RunnerOptions own = options;
    fill_defaults(own, plan.config, *caps);
    options.ctx_len = own.ctx_len;
    options.chunk = own.chunk;  // a later device only makes it smaller
    if (options.all_logits) break;
  }
  DP_CHECK(check_cache_format(plan.config, options.cache_format));
  plan.options = std::move(options);
  const RunnerOptions& common = plan.options;

  const bool is_known =
      std::ranges::all_of(devices, [](const gpu::Caps* caps) { return caps->memory_bytes != 0; });
  std::vector<uint64_t> rooms;
  for (const gpu::Caps* const caps : devices) rooms.push_back(is_known ? caps->memory_bytes : 1);
  const uint32_t positions = std::max(1u, common.max_sequences) * common.ctx_len;
  const uint32_t ring = ring_len_of(common, plan.config);
  const std::vector<uint64_t> layers =
      layer_bytes(plan.config, checkpoint, weight_layout_policy(*devices[0], common.policy),
                  {.ctx_len = common.pool_tokens != 0 ? common.pool_tokens : positions, .ring_len = ring},
                  common.cache_format);
  for (const formats::LayerRange& range : deal_layers(layers, rooms)) {
    formats::ModelConfig config = plan.config;
    config.part = range;
    DP_CHECK(families::build_graph(config));
    plan.shares.push_back({.layers = range, .memory = {}});
  }
  DP_CHECK(fill_common(plan, checkpoint, devices));
  const bool has_many = common.max_sequences != 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    formats::ModelConfig config = plan.config;
    config.part = plan.shares[i].layers;
    const CacheLengths lengths{.ctx_len = has_many ? common.pool_tokens : common.ctx_len,
                               .ring_len = has_many ? common.window_tokens : ring};
    MemoryEstimate& memory = plan.shares[i].memory;
    memory = estimate_of(common, config, checkpoint, *devices[i], lengths);
    Result<void> fits = check_memory(memory, *devices[i], lengths.ctx_len);
    if (fits || !plan.fits) continue;
    plan.fits = forward(std::move(fits).error().add_while(
        format_text("placing layers %u to %u of %u on device %zu of %zu", config.part.first,
                    config.part.end - 1, config.n_layers, i + 1, devices.size())));
  }
  return plan;
}

}  // namespace doppler::model
