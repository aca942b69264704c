// Pictures for models that see. Part of doppler.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "doppler/result.h"

namespace doppler {

// A picture in memory: 8-bit RGB, row by row.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;
  // LoadOptions::pan_and_scan of this picture. Nothing: as the model was loaded.
  std::optional<bool> pan_and_scan = {};

  // From a file: PNG, JPEG, WebP (still), GIF (its first frame) or BMP. It is upright, and its
  // transparent parts lie on white.
  // Errors: another format; more than 64 MiB or 67 million pixels.
  static Result<std::shared_ptr<const Image>> decode(std::span<const uint8_t> file);
  static Result<std::shared_ptr<const Image>> load(const std::string& path);
};

}  // namespace doppler
