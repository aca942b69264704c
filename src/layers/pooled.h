// The end of a model that gives vectors, in place of a head. An embedding model has Dense modules, which are linear, so
// that each token's states may go through them before they are pooled. A model that scores texts has classes.
#pragma once

#include "layers/builder.h"

namespace doppler::layers {

// h: the states, [R, H]. Sets the graph's logits: [R, D].
void pooled(Builder& b, Value h);

}  // namespace doppler::layers
