// Rotations out of a Hugging Face config.json, in both styles: rope_theta + rope_scaling (transformers 4) and
// rope_parameters (transformers 5). A part of read_huggingface.cpp.
#pragma once

#include "base/json_fwd.h"
#include "formats/architectures/config.h"

namespace doppler::formats {

// Needs head_dim and ctx_len. Errors name the field or the scaling.
Result<RopeConfig> read_rope(const Json& json, const ModelConfig& config, RopePairing pairing);
// For the layers that slide, in families that rotate them otherwise.
Result<RopeConfig> read_sliding_rope(const Json& json, const RopeConfig& rope, double usual_theta);
// Llama 4's, which stands among the parameters of the rotation; needs config.rope.
Result<QueryScaling> read_query_scaling(const Json& json, const ModelConfig& config);

}  // namespace doppler::formats
