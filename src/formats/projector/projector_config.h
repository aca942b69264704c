// The metadata of a vision tower's GGUF file, in the form of the files that Hugging Face's folders have.
#pragma once

#include "base/json.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

// A key of our own: the text of preprocessor_config.json, most of which no key of llama.cpp says.
inline constexpr std::string_view kProjectorPreprocessor = "doppler.preprocessor_config";

struct ProjectorConfig {
  Json config, preprocessor;
};

// Numbers that the file has no key for are those of the published models. Errors: an unknown type, a missing key, a key
// of another type.
Result<ProjectorConfig> describe_projector(const GgufFile& header, const Checkpoint& tensors);

}  // namespace doppler::formats
