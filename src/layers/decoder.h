// The parts around the blocks of a decoder: the embedding before them, the final norm and the head after them.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// x is the residual stream, f32 [R, H], before the block; the result is the stream after it.
using Block = Value (*)(Builder& b, Value x, uint32_t layer);
// embedding_scale: what the table's rows are multiplied by. Sets the graph's logits and its hidden values; with
// Builder::drafts its next-token layer too.
void decoder(Builder& b, float embedding_scale, Block block);

// The same in parts, for families that have more between them.
graph::Matrix embedding_table(Builder& b);           // [V, H]
graph::Matrix output_matrix(Builder& b);             // [V, H]; may be the same
Value embedding(Builder& b, float embedding_scale);  // [R, H]; marked as hidden
void head(Builder& b, Value x);                      // sets the graph's logits

}  // namespace doppler::layers
