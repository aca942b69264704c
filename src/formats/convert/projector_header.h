// The metadata of a vision tower's GGUF file, from the numbers of a Hugging Face folder: the other way of
// projector/projector_config.h. Read next: hf_to_projector.h.
#pragma once

#include "formats/architectures/config.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/vision_files.h"

namespace doppler::formats {

// A kind of tower, as GGUF has it.
struct ProjectorKind {
  std::string_view family;     // ModelConfig::family of the tower
  std::string_view projector;  // clip.projector_type
  std::string_view activation;
  uint32_t copies = 1;              // of a picture along time, in each patch
  uint32_t image_size = 0;          // of models whose config.json has none; 0: that of the table of positions
  bool has_wide_projector = false;  // feed_forward_length is the projector's
  Result<void> (*write)(const ModelConfig& tower, const VisionFiles& files, GgufHeader& header) = nullptr;
};

// Errors: a tower that GGUF has no place for, by its model type.
Result<const ProjectorKind*> projector_kind(const ModelConfig& tower);

// Everything but the file's number type. Errors: a number of the preprocessor that is missing.
Result<GgufHeader> projector_header(const ProjectorKind& kind, const ModelConfig& tower,
                                    const VisionFiles& files, const std::string& name);

// `described`: config.json as the file's metadata say it. Error: a number of the tower that they do not say.
Result<void> check_tower_kept(const ModelConfig& tower, const Json& described);

}  // namespace doppler::formats
