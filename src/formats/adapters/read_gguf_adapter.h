// Reads llama.cpp's adapters: GGUF files with general.type "adapter". A pair of tensors has the name of the base
// model's tensor, with .lora_a and .lora_b at the end. The scale is adapter.lora.alpha over the rank of each pair.
#pragma once

#include "formats/adapters/adapter.h"

namespace doppler::formats {

Task<Result<Adapter>> read_gguf_adapter(ByteSource& source);

}  // namespace doppler::formats
