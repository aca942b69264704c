// The numbers that configurations of several towers have, and the readers of towers that have files of their own.
#pragma once

#include "base/json_fwd.h"
#include "formats/architectures/config.h"

namespace doppler::formats::towers {

// Patches of `patch` pixels an edge, `copies` of a picture along time.
Result<void> set_patch(ModelConfig& c, uint32_t patch, uint32_t copies);
Result<uint32_t> count_or(const Json& json, const char* key, uint32_t otherwise);
// The row length of the text model.
Result<void> read_text_dim(const Json& whole, ModelConfig& c);
// The numbers that all towers of Qwen's kind call the same.
Result<void> read_qwen(const Json& vision, ModelConfig& c);

// whole: config.json; vision: its vision_config.
Result<void> read_glm4v(const Json& whole, const Json& vision, ModelConfig& c);
Result<void> read_gemma4(const Json& whole, const Json& vision, ModelConfig& c);

}  // namespace doppler::formats::towers
