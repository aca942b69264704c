// The way in which the choice of a token is spread over the device, for sample.cpp and logprobs.cpp.
#pragma once

#include "kernels/common/tables.h"
#include "kernels/sample/sample.h"

namespace doppler::kernels {

struct SampleShape {
  uint32_t vocab_size;
  uint32_t segments;
  uint32_t workgroup;
  uint32_t rows;  // most that choose a token
  bool has_own;   // each row has its own params, bias and counts; otherwise each sequence has them
};
SampleShape sample_shape(const Context& ctx, const Sample& op);
std::vector<gpu::WgslConst> sample_consts(const SampleShape& shape);

// Workgroups over each row that chooses a token: as many rows as the step has, or in steps with pieces of prompts, of
// which most rows choose none, as there are slots. `bytes` is what a row reads and writes.
Result<void> dispatch_rows(Context& ctx, const SampleShape& shape, Launch launch, uint32_t groups,
                           uint64_t bytes);

}  // namespace doppler::kernels
