#include "model/load_estimate.h"

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "families/families.h"
#include "formats/embedding_modules.h"
#include "kernels/attention/attention.h"
#include "kernels/variant.h"
#include "model/adapter_arena.h"
#include "model/recurrent_states.h"

namespace doppler::model {

namespace {

// Values of the widest row of a chunk that a kernel binds: q, k and v, or gates and ups, beside one another.
uint64_t widest_row(const formats::ModelConfig& c) {
  uint64_t widest = uint64_t{2} * std::max(c.shared_ffn_dim, c.moe.n_used * c.moe.expert_dim);
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    const uint64_t heads = c.n_heads + uint64_t{2} * formats::kv_heads_of(c, i);
    widest = std::max({widest, uint64_t{2} * formats::ffn_dim_of(c, i), heads * formats::head_dim_of(c, i)});
  }
  return widest;
}

// A context beyond what the model was trained for is told of, and cut where the model has no further positions.
void limit_context(RunnerOptions& options, const formats::ModelConfig& config) {
  if (options.ctx_len <= config.ctx_len) return;
  const bool ends = formats::ends_at_ctx_len(config);
  log(LogLevel::kWarning, "A context of %u tokens was asked for; this model %s %u.", options.ctx_len,
      ends ? "has no positions beyond its" : "was trained for", config.ctx_len);
  if (ends) options.ctx_len = config.ctx_len;
}

}  // namespace

void fill_defaults(RunnerOptions& options, const formats::ModelConfig& config, const gpu::Caps& caps) {
  if (options.ctx_len == 0) options.ctx_len = std::min(config.ctx_len, kDefaultCtxLen);
  limit_context(options, config);
  if (options.chunk == 0) {
    options.chunk = kDefaultChunk;
    const uint64_t row_bytes = widest_row(config) * sizeof(float);
    const auto is_too_large = [&] {
      return (options.chunk + options.max_sequences) * row_bytes > caps.max_binding_bytes;
    };
    while (options.chunk > kLeastChunk && is_too_large()) options.chunk /= 2;
    if (options.chunk < kDefaultChunk) {
      log(LogLevel::kInfo,
          "Prompts go in chunks of %u tokens: %u rows of %s are more than this device binds.", options.chunk,
          kDefaultChunk, format_bytes(row_bytes).c_str());
    }
  }
  options.chunk = std::min(options.chunk, options.ctx_len);
  if (!formats::is_embedding_model(config)) return;
  options.all_logits = true;  // the states of all tokens, which are pooled
  options.max_sequences = 0;
  if (config.bidirectional) options.chunk = options.ctx_len;  // each token sees all others
}

void tell_of_layers_left_out(const formats::Checkpoint& checkpoint, const formats::ModelConfig& config) {
  const uint32_t count = formats::layers_left_out(checkpoint, config);
  if (count == 0) return;
  log(LogLevel::kWarning,
      "The file has %u layers after the %u of config.json (num_hidden_layers); they are not used.", count,
      config.n_layers);
}

void tell_of_guessed_pooling(const formats::Checkpoint& checkpoint, const formats::ModelConfig& config) {
  const bool is_told = checkpoint.gguf() || find(checkpoint.config(), formats::kEmbeddingModules);
  if (is_told || !config.bidirectional || config.pooling.n_classes != 0) return;
  log(LogLevel::kWarning,
      "%s has no modules.json, so that its embeddings are the mean of all tokens. Where the model's source "
      "has one, "
      "\"doppler pull --replace\" fetches it.",
      checkpoint.name().c_str());
}

uint32_t ring_len_of(const RunnerOptions& options, const formats::ModelConfig& config) {
  // The one dispatch of the lane persistent has one length for all layers.
  const bool is_persistent =
      options.policy.allows(kernels::Lane::kPersistent) && formats::has_equal_caches(config);
  if (!options.rings || options.max_sequences != 0 || is_persistent) return 0;
  return ring_positions(config, options.ctx_len, options.chunk);
}

formats::LayoutPolicy weight_layout_policy(const gpu::Caps& caps, const kernels::Policy& policy) {
  const bool dp4a = kernels::refuse_by_device(kernels::Lane::kDp4a, kernels::kNeedDp4a, caps, policy).empty();
  return {.exact = policy.name == "exact", .tiles = dp4a};
}

uint32_t read_positions(const formats::ModelConfig& config) {
  return config.sliding_window + kernels::kMostTileKeys - 1;
}

namespace {

// It counts all layers. The estimate has all experts.
uint64_t bytes_of_one_expert(const MemoryEstimate& estimate, const formats::ModelConfig& config) {
  return (estimate.expert_bytes + config.moe.n_experts - 1) / config.moe.n_experts;
}

}  // namespace

MemoryEstimate estimate_of(const RunnerOptions& options, const formats::ModelConfig& config,
                           const formats::Checkpoint& checkpoint, const gpu::Caps& caps,
                           CacheLengths lengths) {
  const formats::LayoutPolicy layout = weight_layout_policy(caps, options.policy);
  MemoryEstimate estimate =
      estimate_memory(config, checkpoint, layout, lengths, options.chunk, options.cache_format);
  if (options.max_sequences != 0) {
    estimate.state_bytes = state_bytes(config) * (options.max_sequences + options.checkpoints);
  }
  if (options.layer_table_on_host) {
    keep_layer_table_on_host(estimate, config, checkpoint, layout.exact,
                             options.chunk + options.max_sequences);
  }
  if (options.expert_slots != 0) {
    const uint64_t of_one = bytes_of_one_expert(estimate, config);
    estimate.weight_bytes -= of_one * (config.moe.n_experts - options.expert_slots);
    estimate.expert_bytes = of_one * options.expert_slots;
  }
  return estimate;
}

Result<bool> choose_layer_table(const RunnerOptions& options, const formats::ModelConfig& config,
                                const formats::Checkpoint& checkpoint, const gpu::Caps& caps) {
  const auto refuse = [&](const char* reason) {
    return fail(ErrorKind::kUnsupported,
                "Embeddings of each layer cannot stay on the host (--layer-table-on-host): %s.", reason);
  };
  if (config.layer_input.dim == 0) {
    if (options.layer_table_on_host) return refuse("the model has none");
    return false;
  }
  if (!has_host_tables()) {
    if (options.layer_table_on_host) return refuse("a browser keeps all weights in GPU memory");
    return false;
  }
  if (options.layer_table_on_host) return true;
  const MemoryEstimate estimate =
      estimate_of(options, config, checkpoint, caps,
                  {.ctx_len = options.ctx_len, .ring_len = ring_len_of(options, config)});
  // With several sequences the pool leaves a tenth for other things on the device.
  const uint64_t usable = options.max_sequences == 0 ? caps.memory_bytes : caps.memory_bytes / 10 * 9;
  if (caps.memory_bytes == 0 || estimate.total() <= usable) return false;
  log(LogLevel::kWarning,
      "The device has no memory for the embeddings of each layer (%s): they stay in the file, and the "
      "rows of a step's tokens come with it.",
      format_bytes(estimate.layer_table_bytes).c_str());
  return true;
}

namespace {

// Tokens in blocks of layers with a window: as many as all slots need at once and, if there is room, twice the window
// of each for texts that come back. Best first; 0: no pool of their own.
std::vector<uint32_t> window_tokens(const RunnerOptions& options, const formats::ModelConfig& config) {
  if (!options.rings || config.sliding_window == 0) return {0};
  const WindowNeed need{.window = read_positions(config),
                        .block_len = options.block_len,
                        .sequences = options.max_sequences,
                        .rows = options.chunk + options.max_sequences,
                        .steps = kMostSteps};
  const uint32_t of_window = (need.window + need.block_len - 1) / need.block_len;
  const uint32_t least = least_window_blocks(need);
  return {(least + 2 * need.sequences * of_window) * need.block_len, least * need.block_len, 0};
}

// Checkpoints of recurrent states: two a sequence, if they take no more than an eighth of the memory that `estimate`
// leaves. If the device's memory is unknown, one.
uint32_t checkpoint_count(const RunnerOptions& options, const formats::ModelConfig& config,
                          const MemoryEstimate& estimate, const gpu::Caps& caps) {
  const uint64_t of_one = state_bytes(config);
  if (of_one == 0) return 0;
  if (caps.memory_bytes == 0) return options.max_sequences;
  const uint64_t left = caps.memory_bytes - std::min(caps.memory_bytes, estimate.total());
  return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{2} * options.max_sequences, left / 8 / of_one));
}

}  // namespace

Result<void> fill_pool(RunnerOptions& options, const formats::ModelConfig& config,
                       const formats::Checkpoint& checkpoint, const gpu::Caps& caps) {
  if (options.max_sequences == 0) return {};
  if (options.max_sequences > kernels::kMaxSequences) {
    return fail(ErrorKind::kInvalidInput, "%u sequences at once were asked for; allowed is 1 to %u.",
                options.max_sequences, kernels::kMaxSequences);
  }
  if (options.block_len == 0) options.block_len = kDefaultBlockLen;
  const uint32_t block_len = options.block_len;
  // Whole blocks for each sequence, and one to spare.
  const uint64_t blocks = (options.ctx_len + block_len - 1) / block_len + 1;
  const uint64_t wanted =
      options.pool_tokens != 0 ? options.pool_tokens : blocks * block_len * options.max_sequences;
  const auto estimate = [&](uint32_t windows) {
    return estimate_of(options, config, checkpoint, caps, {.ctx_len = block_len, .ring_len = windows});
  };
  options.checkpoints = checkpoint_count(options, config, estimate(0), caps);
  const MemoryEstimate plain = estimate(0);
  const auto that_fit = [&](uint32_t windows) -> uint64_t {
    const MemoryEstimate one = estimate(windows);
    const uint64_t binding = std::min(caps.max_binding_bytes, caps.max_buffer_bytes);
    if (one.cache_buffer_bytes > binding) return 0;
    uint64_t fit = std::min(wanted, binding / std::max<uint64_t>(1, plain.cache_buffer_bytes) * block_len);
    if (caps.memory_bytes == 0) return fit;
    // A tenth is left to what else the device has to hold.
    const uint64_t usable = caps.memory_bytes / 10 * 9;
    const uint64_t taken = one.weight_bytes + estimate_adapters(options.adapters, config) +
                           one.scratch_bytes + one.ring_bytes + one.state_bytes;
    const uint64_t left = usable > taken ? usable - taken : 0;
    const uint64_t each = one.cache_bytes - one.ring_bytes + plain.copied_bytes;
    return std::min(fit, left / std::max<uint64_t>(1, each) * block_len);
  };
  uint64_t tokens = 0;
  for (const uint32_t windows : window_tokens(options, config)) {
    if (windows >= wanted) continue;  // one pool is no larger
    const uint64_t fit = that_fit(windows);
    if (fit > tokens) options.window_tokens = windows;
    tokens = std::max(tokens, fit);
  }
  if (options.pool_tokens != 0) tokens = options.pool_tokens;
  tokens = (tokens + block_len - 1) / block_len * block_len;
  if (tokens > UINT32_MAX) {
    return fail(ErrorKind::kInvalidInput,
                "A cache of %llu tokens was asked for; allowed is up to %u, in whole blocks of %u.",
                static_cast<unsigned long long>(wanted), UINT32_MAX / block_len * block_len, block_len);
  }
  if (tokens < block_len) {
    return fail(ErrorKind::kOutOfMemory,
                "The device has no room for a cache block of %u tokens after the weights.", block_len);
  }
  options.pool_tokens = static_cast<uint32_t>(tokens);
  return {};
}

Result<void> choose_expert_slots(RunnerOptions& options, const formats::ModelConfig& config,
                                 const formats::Checkpoint& checkpoint, const gpu::Caps& caps) {
  const MemoryEstimate estimate =
      estimate_of(options, config, checkpoint, caps,
                  {.ctx_len = std::max(options.ctx_len, options.pool_tokens),
                   .ring_len = options.max_sequences != 0 ? 0 : ring_len_of(options, config)});
  const uint32_t experts = config.moe.n_experts, used = config.moe.n_used;
  uint64_t budget = options.expert_bytes;
  const bool is_asked = budget != 0;
  const auto refuse = [&](const char* reason) {
    return fail(ErrorKind::kUnsupported, "Experts cannot be paged (--expert-memory): %s.", reason);
  };
  if (is_asked) {
    if (!pages_experts()) return refuse("a browser keeps all experts in GPU memory");
    if (estimate.expert_bytes == 0) return refuse("the model has none");
    if (options.policy.name == "persistent") return refuse("the lane persistent does not stop for them");
  } else {
    // With several sequences the pool leaves a tenth for other things on the device.
    const uint64_t most = options.max_sequences == 0 ? caps.memory_bytes : caps.memory_bytes / 10 * 9;
    const bool is_too_large = caps.memory_bytes != 0 && estimate.total() > most;
    if (!is_too_large || estimate.expert_bytes == 0 || !pages_experts() ||
        options.policy.name == "persistent") {
      return {};
    }
    // A tenth is left to what else the device has to hold.
    const uint64_t usable = caps.memory_bytes / 10 * 9, others = estimate.total() - estimate.expert_bytes;
    budget = usable > others ? usable - others : 0;
  }
  const uint64_t of_one = bytes_of_one_expert(estimate, config);
  const auto slots =
      static_cast<uint32_t>(std::min<uint64_t>(experts, budget / std::max<uint64_t>(of_one, 1)));
  if (slots == experts) return {};
  if (slots < used) {
    if (!is_asked) return {};  // check_memory() says what is missing
    return fail(ErrorKind::kInvalidInput,
                "Experts were given %s (--expert-memory); the %u of one token take %s, all %u take %s.",
                format_bytes(budget).c_str(), used, format_bytes(of_one * used).c_str(), experts,
                format_bytes(estimate.expert_bytes).c_str());
  }
  options.expert_slots = slots;
  if (!is_asked) {
    log(LogLevel::kWarning,
        "The device has no memory for all experts: %u of %u a layer lie there, the others are read from the "
        "file when they are chosen.",
        slots, experts);
  }
  return {};
}

Result<LoadEstimate> estimate_load(const formats::Checkpoint& checkpoint, RunnerOptions options,
                                   const gpu::Caps& caps) {
  LoadEstimate estimate;
  DP_TRY(estimate.config, formats::read_config(checkpoint));
  DP_CHECK(families::check_has_forward_pass(estimate.config));
  fill_defaults(options, estimate.config, caps);
  tell_of_layers_left_out(checkpoint, estimate.config);
  if (options.pooling == formats::Pooling::kNone) tell_of_guessed_pooling(checkpoint, estimate.config);
  DP_CHECK(choose_drafting(options, estimate.config));
  DP_CHECK(check_cache_format(estimate.config, options.cache_format));
  estimate.ctx_len = options.ctx_len;
  estimate.chunk = options.chunk;
  estimate.cache_format = options.cache_format;
  DP_TRY(options.layer_table_on_host, choose_layer_table(options, estimate.config, checkpoint, caps));
  estimate.layer_table_on_host = options.layer_table_on_host;
  DP_CHECK(choose_expert_slots(options, estimate.config, checkpoint, caps));
  estimate.expert_slots = options.expert_slots;
  estimate.memory =
      estimate_of(options, estimate.config, checkpoint, caps,
                  {.ctx_len = options.ctx_len, .ring_len = ring_len_of(options, estimate.config)});
  estimate.adapter_bytes = estimate_adapters(options.adapters, estimate.config);
  estimate.memory.weight_bytes += estimate.adapter_bytes;
  return estimate;
}

}  // namespace doppler::model
