// The orientation that a camera wrote into a picture's EXIF data.
#pragma once

#include <cstdint>
#include <span>

#include "images/picture.h"

namespace doppler::images {

// exif: a TIFF header and what follows it, perhaps after "Exif\0\0". 1 (upright) if there is no valid orientation.
uint32_t exif_orientation(std::span<const uint8_t> exif);
// The picture as it is to be seen. orientation: 1 to 8.
Picture upright(Picture picture, uint32_t orientation);

}  // namespace doppler::images
