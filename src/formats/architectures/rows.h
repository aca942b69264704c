// The rows of architectures.cpp's table, a file each.
#pragma once

#include "formats/architectures/architecture.h"

namespace doppler::formats {

extern const Architecture kLlamaRow, kQwen2Row, kQwen3Row, kGemma3Row;

// The tensors of a layer that normalises before attention and before the feed-forward layer, and nowhere else.
inline constexpr TensorId kPreNormLayer[] = {
    TensorId::kAttentionNorm, TensorId::kQ,    TensorId::kK,  TensorId::kV,   TensorId::kAttentionOut,
    TensorId::kFfnNorm,       TensorId::kGate, TensorId::kUp, TensorId::kDown};

}  // namespace doppler::formats
