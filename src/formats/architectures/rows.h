// The rows of architectures.cpp's table, and the parts that several rows share.
#pragma once

#include "formats/architectures/architecture.h"

namespace doppler::formats {

// A family's row by its name in the list.
namespace rows {
#define FAMILY(name) extern const Architecture name;
#define FAMILY_LIKE(name, page) extern const Architecture name;
#include "formats/architectures/family_list.h"
}  // namespace rows

// The tensors of a layer that normalises before attention and before the feed-forward layer, and nowhere else.
inline constexpr TensorId kPreNormLayer[] = {
    TensorId::kAttentionNorm, TensorId::kQ,    TensorId::kK,  TensorId::kV,   TensorId::kAttentionOut,
    TensorId::kFfnNorm,       TensorId::kGate, TensorId::kUp, TensorId::kDown};
// The same with a norm after each branch too.
inline constexpr TensorId kNormsAroundLayer[] = {
    TensorId::kAttentionNorm,     TensorId::kQ,       TensorId::kK,    TensorId::kV,  TensorId::kAttentionOut,
    TensorId::kPostAttentionNorm, TensorId::kFfnNorm, TensorId::kGate, TensorId::kUp, TensorId::kDown,
    TensorId::kPostFfnNorm};
// The same with norms of q and k, and norms only after the branches.
inline constexpr TensorId kPostNormLayer[] = {TensorId::kQ,
                                              TensorId::kK,
                                              TensorId::kV,
                                              TensorId::kQNorm,
                                              TensorId::kKNorm,
                                              TensorId::kAttentionOut,
                                              TensorId::kPostAttentionNorm,
                                              TensorId::kGate,
                                              TensorId::kUp,
                                              TensorId::kDown,
                                              TensorId::kPostFfnNorm};
// A field of config.json that a family without numbers in it must have as the family always is. Error: it has another.
Result<void> require_truth(const Json& json, const char* key, bool truth);
Result<void> require_text(const Json& json, const char* key, const char* wanted);
// Subtracts from config.n_layers the layers at the end of a GGUF file that guess further tokens. If the row
// has_next_layer, one becomes config.next_layers.
Result<void> leave_out_guessing_layers(const GgufKeys& keys, ModelConfig& config);

// The same with experts in the layers that have them.
inline constexpr TensorId kPreNormMoeLayer[] = {TensorId::kAttentionNorm,
                                                TensorId::kQ,
                                                TensorId::kK,
                                                TensorId::kV,
                                                TensorId::kAttentionOut,
                                                TensorId::kFfnNorm,
                                                TensorId::kRouter,
                                                TensorId::kRouterBias,
                                                TensorId::kExpertGate,
                                                TensorId::kExpertUp,
                                                TensorId::kExpertDown,
                                                TensorId::kSharedRouter,
                                                TensorId::kSharedGate,
                                                TensorId::kSharedUp,
                                                TensorId::kSharedDown,
                                                TensorId::kGate,
                                                TensorId::kUp,
                                                TensorId::kDown};

}  // namespace doppler::formats
