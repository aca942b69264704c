// The feed-forward layer of a block: a mixture of experts (Shazeer et al. 2017) where the model's numbers say so, else the
// gated layer that every token goes through.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// Routed experts, and beside them a shared one where there is one.
Value mixture_of_experts(Builder& b, Value h, uint32_t layer);  // [R, H]
// The same by logits of a router that reads something else. logits: [R, experts].
Value mixture_of_experts(Builder& b, Value h, Value logits, uint32_t layer);
// Which experts a row is sent to, as the model's numbers say.
Value expert_routes(Builder& b, Value logits, uint32_t layer);  // [R, 2 n_used]
Value feed_forward(Builder& b, Value h, uint32_t layer);        // [R, H]

}  // namespace doppler::layers
