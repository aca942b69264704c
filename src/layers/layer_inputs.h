// Embeddings that each layer has of each token (Gemma 3n): a table of its own beside a projection of the token's
// embedding, and what a layer adds to the residual by them. R rows, H hidden, L layers, P numbers a layer.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// x: the embeddings [R, H]. The inputs of all layers beside one another.
Value layer_inputs(Builder& b, Value x);  // [R, L P]
// Layer `layer`'s branch from the residual and its inputs, normalised.
Value layer_input_branch(Builder& b, Value x, Value inputs, uint32_t layer);  // [R, H]

}  // namespace doppler::layers
