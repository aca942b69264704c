// From a step's logits to the next step's input: chooses the token (sample.h), ends the step (step.h), and makes the
// residual stream and first norm of the one row that the next step begins with (embed_norm.h). So every plan that
// chooses a token ends, and every decode plan begins with its layers.
// One dispatch where the choice is greedy and the head left the best of its tiles; then neither `counts` nor `recent` of
// the step are kept, which only sampling reads. Otherwise the three operations apart.
// After a stop the ring gets kNoToken and the state stays; x and h are then those of a token that nobody sees.
#pragma once

#include "kernels/embed/embed_norm.h"
#include "kernels/sample/sample.h"
#include "kernels/step/step.h"

namespace doppler::kernels {

struct Next {
  Sample sample;
  Step step;        // its token is sample's
  EmbedNorm input;  // likewise
};
Result<void> record(Context& ctx, const Next& op);

}  // namespace doppler::kernels
