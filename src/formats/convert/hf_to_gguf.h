// A Hugging Face checkpoint as GGUF describes it: metadata keys, tensor names, the order of rows, the tokenizer.
#pragma once

#include "formats/convert/outline.h"

namespace doppler::formats {

// Fills in everything of `outline` but the tensors' declarations. Errors: a family or feature without a place in GGUF,
// a missing, misshapen or left-over tensor, a tokenizer that GGUF cannot hold.
Task<Result<>> outline_hf_to_gguf(const Checkpoint& model, const ConvertOptions& options,
                                  GgufOutline& outline);

}  // namespace doppler::formats
