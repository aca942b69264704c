// The feed-forward layer of a block: a mixture of experts (Shazeer et al. 2017) if the model's numbers say so, else the
// gated layer that every token goes through.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// Routed experts, and a shared one beside them if the model has it.
Value mixture_of_experts(Builder& b, Value h, uint32_t layer);  // [R, H]
// The same by logits of a router that reads something else. logits: [R, experts].
Value mixture_of_experts(Builder& b, Value h, Value logits, uint32_t layer);
// The experts of each row, by the model's numbers.
Value expert_routes(Builder& b, Value logits, uint32_t layer);  // [R, 2 n_used]
Value feed_forward(Builder& b, Value h, uint32_t layer);        // [R, H]

}  // namespace doppler::layers
