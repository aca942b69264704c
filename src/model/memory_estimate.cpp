#include "model/memory_estimate.h"

#include <algorithm>
#include <optional>

#include "formats/architectures/tensor_names.h"
#include "model/recurrent_states.h"

namespace doppler::model {
namespace {

constexpr DType kQuantisations[] = {DType::kQ8_0, DType::kQ6_K, DType::kQ5_K,
                                    DType::kQ4_K, DType::kQ3_K, DType::kQ2_K};

uint64_t device_bytes(const formats::TensorInfo& tensor, DType type, formats::LayoutPolicy layout) {
  if (tensor.shape.size() < 2) return tensor.bytes;
  uint64_t rows = 1;  // all dimensions but the last, as of experts
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  const auto format = formats::device_format(type, tensor.shape.back(), layout);
  return format ? weight_layout(*format, rows, tensor.shape.back()).total_bytes : tensor.bytes;
}

// The layers that need a tensor, if it is not of one layer. The embeddings are the first layer's affair, and the
// last one's too if they are the head; all else that is of no layer stands after the last one.
formats::LayerRange layers_with(const formats::ModelConfig& c, const formats::TensorInfo& tensor) {
  if (const std::optional<uint32_t> layer = formats::layer_of_tensor(tensor.name))
    return {*layer, *layer + 1};
  if (tensor.name != formats::stored_tensor(c, TensorId::kEmbedding, 0).weight_name())
    return {c.n_layers - 1, c.n_layers};
  return {0, c.tied_embeddings ? c.n_layers : 1};
}

bool is_here(const formats::ModelConfig& c, const formats::TensorInfo& tensor) {
  if (formats::is_whole(c)) return true;
  const formats::LayerRange layers = layers_with(c, tensor);
  return c.part.has(layers.first) || c.part.has(layers.end - 1);
}

std::vector<QuantisedSize> smaller_sizes(const formats::ModelConfig& c, const formats::Checkpoint& checkpoint,
                                         formats::LayoutPolicy layout, uint64_t weight_bytes) {
  std::vector<QuantisedSize> out;
  for (const DType type : kQuantisations) {
    uint64_t bytes = 0;
    for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
      if (!is_here(c, tensor)) continue;
      const bool has_blocks =
          tensor.shape.size() >= 2 && tensor.shape.back() % dtype_info(type).block_size == 0;
      bytes += has_blocks ? device_bytes(tensor, type, layout) : device_bytes(tensor, tensor.type, layout);
    }
    if (bytes < weight_bytes) out.push_back({.type = dtype_info(type).name, .weight_bytes = bytes});
  }
  return out;
}

// Advice for a user whose model does not fit.
std::string hint(const MemoryEstimate& estimate, uint64_t memory, uint64_t bindable, uint64_t positions) {
  const uint64_t fixed =
      estimate.weight_bytes + estimate.state_bytes + estimate.scratch_bytes + estimate.ring_bytes;
  if (fixed < memory) {
    const uint64_t growing = estimate.cache_bytes - estimate.ring_bytes;
    const uint64_t per_position = std::max<uint64_t>(1, growing / positions);
    const uint64_t fits = std::min(bindable, (memory - fixed) / per_position / 256 * 256);
    if (fits >= 256) {
      return format_text("A context of %llu tokens would fit (--ctx).",
                         static_cast<unsigned long long>(fits));
    }
  }
  for (const QuantisedSize& smaller : estimate.smaller) {
    const uint64_t total = estimate.total() - estimate.weight_bytes + smaller.weight_bytes;
    if (total > memory) continue;
    return format_text("Quantised to %s it would need %s (doppler convert --quantize %s).", smaller.type,
                       format_bytes(total).c_str(), smaller.type);
  }
  return "A smaller or more strongly quantised model is needed.";
}

const formats::TensorInfo* layer_table(const formats::ModelConfig& c, const formats::Checkpoint& checkpoint) {
  if (c.layer_input.dim == 0) return nullptr;
  return checkpoint.find(formats::stored_tensor(c, TensorId::kLayerTable, 0).weight_name());
}

}  // namespace

uint32_t ring_positions(const formats::ModelConfig& config, uint32_t ctx_len, uint32_t chunk) {
  constexpr uint64_t kStep =
      32;  // keys of a tile of attention_prefill_matrix.wgsl, which then never goes around the end
  if (config.sliding_window == 0) return 0;
  const uint64_t seen = uint64_t{config.sliding_window} - 1 + chunk;
  const uint64_t positions = (seen + kStep - 1) / kStep * kStep;
  return positions < ctx_len ? static_cast<uint32_t>(positions) : 0;
}

kernels::CacheView cache_shape(const formats::ModelConfig& config, uint32_t layer, CacheLengths lengths,
                               kernels::CacheFormat format) {
  return {.k = {},
          .v = {},
          .format = format,
          .n_kv_heads = formats::kv_heads_of(config, layer),
          .ctx_len = lengths.ctx_len,
          .head_dim = formats::head_dim_of(config, layer),
          .ring_len = formats::is_sliding_layer(config, layer) ? lengths.ring_len : 0};
}

Result<void> check_cache_format(const formats::ModelConfig& config, kernels::CacheFormat format) {
  if (format != kernels::CacheFormat::kQ8_0) return {};
  for (uint32_t i = 0; i < config.n_layers; ++i) {
    const uint32_t head_dim = formats::head_dim_of(config, i);
    if (!formats::has_cache(config, i) || head_dim % kernels::kCacheBlock == 0) continue;
    return fail(
        ErrorKind::kUnsupported,
        "A cache in q8_0 has blocks of %u values, and heads of layer %u have %u; allowed are f16 and f32.",
        kernels::kCacheBlock, i, head_dim);
  }
  return {};
}

std::vector<uint64_t> layer_bytes(const formats::ModelConfig& c, const formats::Checkpoint& checkpoint,
                                  formats::LayoutPolicy layout, CacheLengths lengths,
                                  kernels::CacheFormat cache_format) {
  std::vector<uint64_t> bytes(c.n_layers);
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    const formats::LayerRange layers = layers_with(c, tensor);
    const uint64_t of_tensor = device_bytes(tensor, tensor.type, layout);
    if (layers.first < c.n_layers) bytes[layers.first] += of_tensor;
    if (layers.end > layers.first + 1) bytes[c.n_layers - 1] += of_tensor;
  }
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    bytes[i] += state_shape(c, i).bytes();
    if (formats::has_cache(c, i)) bytes[i] += 2 * cache_shape(c, i, lengths, cache_format).bytes();
  }
  return bytes;
}

MemoryEstimate estimate_memory(const formats::ModelConfig& c, const formats::Checkpoint& checkpoint,
                               formats::LayoutPolicy layout, CacheLengths lengths, uint32_t chunk,
                               kernels::CacheFormat cache_format) {
  MemoryEstimate estimate{.ring_len = lengths.ring_len};
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    if (is_here(c, tensor)) estimate.weight_bytes += device_bytes(tensor, tensor.type, layout);
  }
  for (uint32_t i = 0; i < c.n_layers; ++i) {
    if (!formats::is_moe_layer(c, i) || !c.part.has(i)) continue;
    for (const TensorId id : {TensorId::kExpertGate, TensorId::kExpertUp, TensorId::kExpertDown}) {
      const formats::TensorInfo* tensor = checkpoint.find(formats::stored_tensor(c, id, i).weight_name());
      if (tensor) estimate.expert_bytes += device_bytes(*tensor, tensor->type, layout);
    }
  }
  if (const formats::TensorInfo* table = layer_table(c, checkpoint)) {
    estimate.layer_table_bytes = device_bytes(*table, table->type, layout);
  }
  estimate.smaller = smaller_sizes(c, checkpoint, layout, estimate.weight_bytes);
  for (uint32_t i = 0; i < c.n_layers + c.next_layers; ++i) {
    if (!formats::has_cache(c, i) || !c.part.has(i)) continue;
    const kernels::CacheView shape = cache_shape(c, i, lengths, cache_format);
    const uint64_t bytes = shape.bytes();
    const bool is_copied = cache_format == kernels::CacheFormat::kQ8_0;
    const uint64_t bound = is_copied ? cache_shape(c, i, lengths, kernels::CacheFormat::kF16).bytes() : bytes;
    estimate.cache_buffer_bytes = std::max(estimate.cache_buffer_bytes, bound);
    if (is_copied) estimate.copied_bytes = std::max(estimate.copied_bytes, 2 * bound);
    estimate.cache_bytes += 2 * bytes;
    if (shape.ring_len != 0) estimate.ring_bytes += 2 * bytes;
  }
  estimate.state_bytes = state_bytes(c) * (kept_rows(c) + kCheckpoints);
  // Alive together at the widest place: residual, normalised input, gate and up, their product.
  const uint64_t attention =
      static_cast<uint64_t>(c.n_heads + 2 * c.n_kv_heads) * c.head_dim + 2ull * c.n_heads * c.head_dim;
  const uint64_t widest =
      std::max<uint64_t>(attention, 3ull * std::max(c.ffn_dim, c.shared_ffn_dim)) + 2ull * c.hidden_dim;
  estimate.scratch_bytes = static_cast<uint64_t>(chunk) * widest * 4 +
                           static_cast<uint64_t>(c.vocab_size) * 8 + estimate.copied_bytes;
  return estimate;
}

void keep_layer_table_on_host(MemoryEstimate& estimate, const formats::ModelConfig& config,
                              const formats::Checkpoint& checkpoint, bool exact, uint32_t rows) {
  const formats::TensorInfo* const table = layer_table(config, checkpoint);
  if (!table) return;
  const auto format = formats::device_format(table->type, exact);
  const uint64_t room = format ? weight_layout(*format, rows, table->shape.back()).total_bytes : 0;
  estimate.weight_bytes = estimate.weight_bytes - estimate.layer_table_bytes + room;
  estimate.layer_table_bytes = room;
}

TogetherBytes together_bytes(const formats::ModelConfig& config, const formats::Checkpoint& checkpoint,
                             formats::LayoutPolicy layout) {
  constexpr uint64_t kStep = 512;        // room for both planes of a weight to be aligned
  constexpr uint64_t kTables = 1 << 16;  // rotation and biases of stacked weights
  TogetherBytes bytes{.layers = std::vector<uint64_t>(config.n_layers), .vectors = kTables};
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.shape.size() == 1) {
      bytes.vectors += tensor.shape[0] * sizeof(float) + kStep;
      continue;
    }
    const std::optional<uint32_t> layer = formats::layer_of_tensor(tensor.name);
    if (tensor.shape.size() < 2 || !layer || *layer >= config.n_layers) continue;
    bytes.layers[*layer] += (device_bytes(tensor, tensor.type, layout) + kStep + 255) / 256 * 256;
  }
  return bytes;
}

Result<void> check_memory(const MemoryEstimate& estimate, const gpu::Caps& caps, uint32_t ctx_len) {
  const uint64_t binding = std::min(caps.max_binding_bytes, caps.max_buffer_bytes);
  const uint64_t positions = std::max(1u, ctx_len);
  const uint64_t bindable =
      binding / std::max<uint64_t>(1, estimate.cache_buffer_bytes / positions) / 256 * 256;
  const bool is_too_large = caps.memory_bytes != 0 && estimate.total() > caps.memory_bytes;
  if (!is_too_large && estimate.cache_buffer_bytes > binding) {
    return fail(ErrorKind::kUnsupported,
                "A context of %u tokens makes each layer's cache two buffers of %s, but %s binds at most %s; "
                "%llu tokens "
                "would fit (--ctx).",
                ctx_len, format_bytes(estimate.cache_buffer_bytes).c_str(), caps.adapter.c_str(),
                format_bytes(binding).c_str(), static_cast<unsigned long long>(bindable));
  }
  if (!is_too_large) return {};
  return fail(ErrorKind::kOutOfMemory,
              "The model needs %s (weights %s, cache for %u tokens %s, scratch %s), but %s has %s. %s",
              format_bytes(estimate.total()).c_str(), format_bytes(estimate.weight_bytes).c_str(), ctx_len,
              format_bytes(estimate.cache_bytes).c_str(), format_bytes(estimate.scratch_bytes).c_str(),
              caps.adapter.c_str(), format_bytes(caps.memory_bytes).c_str(),
              hint(estimate, caps.memory_bytes, bindable, positions).c_str());
}

}  // namespace doppler::model
