// The four numbers of Granite's models, dense and hybrid, by the keys that both kinds of file have.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/architecture.h"

namespace doppler::formats {

// Keys that change the maths and that the readers below understand, for GgufRow::keys and HuggingFaceRow::keys.
inline constexpr std::string_view kHuggingFaceGraniteKeys[] = {"embedding_multiplier", "attention_multiplier",
                                                               "residual_multiplier", "logits_scaling"};
inline constexpr std::string_view kGgufGraniteKeys[] = {"embedding_scale", "attention.scale",
                                                        "residual_scale", "logit_scale"};

Result<void> read_huggingface_granite(const Json& json, ModelConfig& config);
// Reads also whether any layer rotates.
Result<void> read_gguf_granite(const GgufKeys& keys, ModelConfig& config);
// The numbers for a file that is written.
std::vector<GgufField> gguf_granite_fields(const ModelConfig& config);

}  // namespace doppler::formats
