// Fields of a config.json that change the maths and that the reader of a family does not understand.
#pragma once

#include "formats/architectures/architecture.h"

namespace doppler::formats {

// Error: one that `row` does not name as understood, unless its value changes nothing.
Result<void> refuse_others(const Json& json, const HuggingFaceRow& row, const ModelConfig& config);

// json: a folder with weights. Error: its quantization_config, or its text model's, names a way of storing weights that
// this build does not read, or asks to transform them.
Result<void> check_quantisation(const Json& json);

}  // namespace doppler::formats
