// Changes to what an open checkpoint gives, before a model is loaded from it or converted: tensors of an adapter in the place
// of its own (adapters/whole_tensors.h, adapters/merge.h).
#pragma once

#include "formats/checkpoint.h"

namespace doppler::formats {

// Puts a tensor of f32 in the place of that of its name, or besides all others. `from` is for messages.
void put_tensor(Checkpoint& checkpoint, std::string tensor, std::vector<uint64_t> shape,
                std::vector<float> values, std::string from);
// A tensor that is there has its bytes from `source`, which has nothing else.
void put_source(Checkpoint& checkpoint, const std::string& tensor, std::unique_ptr<ByteSource> source);

}  // namespace doppler::formats
