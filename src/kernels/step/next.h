// From a step's logits to the next step's input: chooses the token (sample.h), ends the step (step.h), and makes the
// residual stream and first norm of the one row that the next step begins with (embed_norm.h). So every plan that
// chooses a token ends, and every decode plan begins with its layers. It is one dispatch if the choice is greedy and
// the head left the best of its tiles; it then moves neither `counts` nor `recent` of the step, which only sampling
// reads. Otherwise it is the three operations apart. After a stop the ring gets kNoToken and the state stays; x and h
// are then those of a token that no one sees.
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
