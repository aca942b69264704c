// config.json of a llama checkpoint, as the numbers that GGUF metadata needs.
#pragma once

#include "base/json_fwd.h"
#include "formats/gguf/llama_metadata.h"

namespace doppler::formats {

// Reads the old spelling (rope_theta, rope_scaling) and the new one (rope_parameters). Refuses biases and
// rotary scalings other than none and "llama3".
Result<LlamaShape> read_hf_llama_config(const Json& config);

}  // namespace doppler::formats
