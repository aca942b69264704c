#include "formats/convert/conversion.h"

namespace doppler::formats {

uint64_t OutTensor::rows() const {
  uint64_t rows = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) rows *= shape[d];
  return rows;
}

uint64_t OutTensor::bytes() const {
  const DTypeInfo& info = dtype_info(type);
  const auto blocks = [&](uint64_t count) { return (count + info.block_size - 1) / info.block_size; };
  switch (layout) {
    case RdrrLayout::kFlat:
      return blocks(rows() * k()) * info.block_bytes;
    case RdrrLayout::kRow:
      return rows() * blocks(k()) * info.block_bytes;
    case RdrrLayout::kColumn:
      return k() * blocks(rows()) * info.block_bytes;
  }
  return 0;
}

}  // namespace doppler::formats
