// What stands behind the last states of a model that gives vectors, in place of a head: the Dense modules of an embedding
// model, which are linear, so that each token's states may go through them before they are pooled; or the classes of one that
// scores texts.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// h: the states, [R, H]. Sets the graph's logits: [R, D].
void pooled(Builder& b, Value h);

}  // namespace doppler::layers
