// Changes what an open checkpoint gives, before a model is loaded from it or converted: tensors of an adapter take the
// place of its own (adapters/whole_tensors.h, adapters/merge.h).
#pragma once

#include "formats/checkpoint.h"

namespace doppler::formats {

// Adds an f32 tensor, which replaces a tensor of its name. `from` is for messages.
void put_tensor(Checkpoint& checkpoint, std::string tensor, std::vector<uint64_t> shape,
                std::vector<float> values, std::string from);
// Makes a tensor that the checkpoint has take its bytes from `source`, which holds only these.
void put_source(Checkpoint& checkpoint, const std::string& tensor, std::unique_ptr<ByteSource> source);

}  // namespace doppler::formats
