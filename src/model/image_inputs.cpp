#include "model/image_inputs.h"

#include <algorithm>

#include "base/bytes.h"

namespace doppler::model {

Result<bool> ImageInputs::write(gpu::Device& device, std::span<const uint32_t> tokens, uint32_t pos,
                                uint32_t& shift) const {
  if (!store || std::ranges::none_of(tokens, is_image_token)) return false;
  DP_TRY(const std::vector<uint32_t> rows, store->places(tokens));
  DP_CHECK(device.write(*places, 0, bytes_of(rows)));
  if (counts_by_axes) DP_CHECK(device.write(*axes, axes_offset, bytes_of(store->axes(shift, tokens))));
  if (!spans) return true;
  DP_CHECK(device.write(*spans, 0, bytes_of(store->spans(tokens, pos, 0))));
  DP_CHECK(device.write(*sliding_spans, 0, bytes_of(store->spans(tokens, pos, window))));
  return true;
}

}  // namespace doppler::model
