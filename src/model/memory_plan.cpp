#include "model/memory_plan.h"

#include <algorithm>

namespace doppler::model {

MemoryPlan plan_memory(const ModelConfig& c, const formats::Checkpoint& checkpoint,
                       formats::LayoutPolicy layout, uint32_t ctx_len, uint32_t chunk,
                       kernels::CacheFormat cache_format) {
  MemoryPlan plan;
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
    const auto format = formats::device_format(tensor.type, tensor.shape.back(), layout);
    if (tensor.shape.size() == 2 && format) {
      plan.weight_bytes += weight_layout(*format, tensor.shape[0], tensor.shape[1]).total_bytes;
    } else {
      plan.weight_bytes += tensor.bytes;
    }
  }
  const kernels::CacheView layer{.k = {},
                                 .v = {},
                                 .format = cache_format,
                                 .n_kv_heads = c.n_kv_heads,
                                 .ctx_len = ctx_len,
                                 .head_dim = c.head_dim};
  plan.cache_buffer_bytes = layer.bytes();
  plan.cache_bytes = 2ull * c.n_layers * plan.cache_buffer_bytes;
  // Alive together at the widest place: residual, normalised input, gate and up, their product.
  const uint64_t attention =
      static_cast<uint64_t>(c.n_heads + 2 * c.n_kv_heads) * c.head_dim + 2ull * c.n_heads * c.head_dim;
  const uint64_t widest = std::max<uint64_t>(attention, 3ull * c.ffn_dim) + 2ull * c.hidden_dim;
  plan.scratch_bytes = static_cast<uint64_t>(chunk) * widest * 4 + static_cast<uint64_t>(c.vocab_size) * 8;
  return plan;
}

Result<void> check_memory(const MemoryPlan& plan, const gpu::Caps& caps, uint32_t ctx_len) {
  const uint64_t binding = std::min(caps.max_binding_bytes, caps.max_buffer_bytes);
  const uint64_t positions = std::max(1u, ctx_len);
  const uint64_t bindable = binding / std::max<uint64_t>(1, plan.cache_buffer_bytes / positions) / 256 * 256;
  const bool is_too_large = caps.memory_bytes != 0 && plan.total() > caps.memory_bytes;
  if (!is_too_large && plan.cache_buffer_bytes > binding) {
    return fail(ErrorKind::kUnsupported,
                "A context of %u tokens makes each layer's cache two buffers of %s, but %s binds at most %s; "
                "%llu tokens "
                "would fit (--ctx).",
                ctx_len, format_bytes(plan.cache_buffer_bytes).c_str(), caps.adapter.c_str(),
                format_bytes(binding).c_str(), static_cast<unsigned long long>(bindable));
  }
  if (!is_too_large) return {};
  std::string hint = "A smaller or more strongly quantised model is needed.";
  const uint64_t fixed = plan.weight_bytes + plan.scratch_bytes;
  const uint64_t per_position = std::max<uint64_t>(1, plan.cache_bytes / positions);
  if (fixed < caps.memory_bytes) {
    const uint64_t fits = std::min(bindable, (caps.memory_bytes - fixed) / per_position / 256 * 256);
    if (fits >= 256)
      hint =
          format_text("A context of %llu tokens would fit (--ctx).", static_cast<unsigned long long>(fits));
  }
  return fail(ErrorKind::kOutOfMemory,
              "The model needs %s (weights %s, cache for %u tokens %s, scratch %s), but %s has %s. %s",
              format_bytes(plan.total()).c_str(), format_bytes(plan.weight_bytes).c_str(), ctx_len,
              format_bytes(plan.cache_bytes).c_str(), format_bytes(plan.scratch_bytes).c_str(),
              caps.adapter.c_str(), format_bytes(caps.memory_bytes).c_str(), hint.c_str());
}

}  // namespace doppler::model
