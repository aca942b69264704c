// The layer after the last that predicts the token after the next one (multi-token prediction, DeepSeek-AI 2024; in
// Qwen 3.5's form). It is one more block with keys and values of its own, on a projection of the next token's embedding
// beside the row's last state. It ends with the model's own head.
#pragma once

#include "layers/decoder.h"

namespace doppler::layers {

// x: the residual stream after the last layer, [R, H]. Sets the graph's next logits.
void next_token(Builder& b, Value x, float embedding_scale, Block block);

}  // namespace doppler::layers
