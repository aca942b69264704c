// The facts about a model's vision tower, in the form of Hugging Face's files. Read next:
// architectures/tower.h, images/image_rules.h.
#pragma once

#include <optional>

#include "base/json.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

struct VisionFiles {
  const Checkpoint* tensors = nullptr;  // which has the tower's weights
  Json config;                          // config.json
  Json
      preprocessor;  // preprocessor_config.json, or the image processor of processor_config.json; null: there is none
  Json processor;  // processor_config.json; null: there is none
};

// `projector`: the file of the tower beside a GGUF model (projector/projector.h), or null; a model may also have its
// tower in itself. Files by these names beside the tower's file say more than its metadata, and go before them. Both
// checkpoints must outlive the result.
// Empty: a GGUF model without such a file. Errors: files that cannot be read; a projector of a type that is not known.
Task<Result<std::optional<VisionFiles>>> read_vision_files(const Checkpoint& model,
                                                           const Checkpoint* projector);

}  // namespace doppler::formats
