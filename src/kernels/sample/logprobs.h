// The log-probabilities of chosen tokens and of the best ones: the dispatches of Sample::logprobs, which sample.h
// defines.
#pragma once

#include "kernels/sample/shape.h"

namespace doppler::kernels {

struct LogProbParts {
  TensorView plain;  // f32 [n, vocab_size]: l of step 1
  TensorView parts;  // of each segment
};
// Recorded before the choice, from the plain logits.
Result<LogProbParts> record_logprob_parts(Context& ctx, const Sample& op, const SampleShape& shape);
// Recorded after the choice.
Result<void> record_logprob_entry(Context& ctx, const Sample& op, const SampleShape& shape,
                                  const LogProbParts& from);

}  // namespace doppler::kernels
