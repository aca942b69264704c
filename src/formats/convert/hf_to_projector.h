// The vision tower of a Hugging Face folder as GGUF has it: a file of its own, which llama.cpp calls mmproj.
#pragma once

#include <string>

#include "formats/checkpoint.h"

namespace doppler::formats {

// Gives the tower's tensors GGUF's names, order and shapes, and the model the header of that file
// (Checkpoint::projector()), so that the model converts like one that was made of two GGUF files. A model without a
// tower that this build knows is not changed. name: the model's; empty: the source's.
// Errors: a tower that GGUF has no place for; a number or a tensor that is missing.
Task<Result<void>> part_tower(Checkpoint& model, std::string name);

// The number type that such a file has for a tensor: vectors and positions are f32, the patches' matrix f16 or f32.
DType projector_type(const TensorInfo& tensor);

}  // namespace doppler::formats
