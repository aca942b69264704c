// PEFT's folders: adapter_config.json and adapter_model.safetensors.
#pragma once

#include "formats/adapters/adapter.h"

namespace doppler::formats {

inline constexpr const char* kPeftConfigName = "adapter_config.json";
inline constexpr const char* kPeftModelName = "adapter_model.safetensors";

Task<Result<Adapter>> read_peft(FileSet& files);

}  // namespace doppler::formats
