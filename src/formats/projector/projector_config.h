// The metadata of a vision tower's GGUF file, in the form of the files that Hugging Face's folders have.
#pragma once

#include "base/json.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

struct ProjectorConfig {
  Json config, preprocessor;
};

// Numbers that the file has no key for are those of the published models. Errors: a type that is not known, a key that
// is missing or has another type.
Result<ProjectorConfig> describe_projector(const GgufFile& header, const Checkpoint& tensors);

}  // namespace doppler::formats
