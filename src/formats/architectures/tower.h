// The numbers of a model's vision tower, as a ModelConfig of its own: rows are patches, ctx_len is the length of the
// table of learned positions. Read next: towers/tower_rows.h.
#pragma once

#include <optional>

#include "formats/architectures/config.h"
#include "formats/vision_files.h"

namespace doppler::formats {

// Empty: the files have no tower, or none that this build knows. Errors: numbers that are missing or do not fit.
Result<std::optional<ModelConfig>> read_tower(const VisionFiles& files);
// The same by config.json, without the names of tensors.
Result<std::optional<ModelConfig>> read_tower_numbers(const Json& config);

}  // namespace doppler::formats
