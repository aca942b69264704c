// ModelConfig from the two kinds of checkpoint; read_config() (config.h) picks and checks.
#pragma once

#include "formats/gguf/gguf.h"
#include "model/config.h"

namespace doppler::model {

Result<ModelConfig> config_from_gguf(const formats::Checkpoint& checkpoint, const formats::GgufFile& gguf);
Result<ModelConfig> config_from_huggingface(const formats::Checkpoint& checkpoint, const Json& json);

}  // namespace doppler::model
