// ModelConfig from the two kinds of checkpoint; read_config() (config.h) picks and checks.
#pragma once

#include "base/json_fwd.h"
#include "formats/gguf/gguf.h"
#include "model/config.h"

namespace doppler::model {

Result<ModelConfig> config_from_gguf(const formats::Checkpoint& checkpoint, const formats::GgufFile& gguf);
Result<ModelConfig> config_from_huggingface(const formats::Checkpoint& checkpoint, const Json& json);

// config_gemma3.cpp: what gemma3 has more than other families.
Result<void> add_gemma3_gguf(ModelConfig& config, const formats::GgufFile& gguf);
Result<void> add_gemma3_huggingface(ModelConfig& config, const formats::Checkpoint& checkpoint,
                                    const Json& json);
// The text model's config.json in the spelling of transformers 4, with transformers' defaults for what is left out.
Json plain_gemma3_config(const Json& json);

}  // namespace doppler::model
