// Writes a safetensors file of a few tensors held in memory, such as `doppler logits --out`.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "formats/sink.h"

namespace doppler::formats {

struct SafetensorsItem {
  std::string name;
  DType type;                      // a plain number type
  std::vector<uint64_t> shape;     // outermost first
  std::span<const uint8_t> bytes;  // exactly what type and shape need
};

Result<> write_safetensors(std::span<const SafetensorsItem> items,
                           std::span<const std::pair<std::string, std::string>> metadata, ByteSink& sink);

}  // namespace doppler::formats
