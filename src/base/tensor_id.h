// Which weight of a model: one name for what every file format calls differently. Families ask for weights by it, the
// tables of architectures (formats/architectures) say what files call them, labels in profiles show tensor_label().
#pragma once

#include <cstdint>
#include <string>

namespace doppler {

enum class TensorId : uint8_t {
  kEmbedding,
  kOutput,
  kFinalNorm,
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kAttentionOut,
  kQNorm,  // of each head
  kKNorm,
  kPostAttentionNorm,  // of what attention adds to the residual
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kPostFfnNorm,  // of what the feed-forward layer adds to the residual
  kXielu,        // the four numbers of an activation
};
inline constexpr uint32_t kTensorIdCount = static_cast<uint32_t>(TensorId::kXielu) + 1;

// The same for all kinds of file: "blk.3.attn_q", "output". `layer` is ignored for weights outside the layers.
std::string tensor_label(TensorId id, uint32_t layer);
bool is_in_layer(TensorId id);

}  // namespace doppler
