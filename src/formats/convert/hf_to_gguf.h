// A Hugging Face checkpoint as GGUF describes it: metadata keys, tensor names, the order of rows, the tokenizer.
#pragma once

#include "formats/convert/plan.h"

namespace doppler::formats {

// Fills in everything of `plan` but the tensors' declarations. Errors: a family or feature without a place in GGUF,
// a missing, misshapen or left-over tensor, a tokenizer that GGUF cannot hold.
Task<Result<>> plan_hf_to_gguf(const Checkpoint& model, const ConvertOptions& options, GgufPlan& plan);

}  // namespace doppler::formats
