#include "model/image_inputs.h"

#include <algorithm>

#include "base/bytes.h"
#include "kernels/attention/attention.h"
#include "kernels/rope/rope.h"

namespace doppler::model {

Result<bool> ImageInputs::write(gpu::Device& device, uint32_t pos, std::span<const uint32_t> tokens,
                                uint32_t& shift) const {
  if (!store || std::ranges::none_of(tokens, is_image_token)) return false;
  DP_TRY(const std::vector<uint32_t> rows, store->places(tokens));
  DP_CHECK(device.write(*places, 0, bytes_of(rows)));
  if (axes) DP_CHECK(device.write(*axes, steps_bytes, bytes_of(store->axes(shift, tokens))));
  DP_CHECK(write_spans(device, 0, pos, tokens));
  return true;
}

std::vector<uint32_t> ImageInputs::embedded(std::span<const uint32_t> tokens) const {
  if (!store) return {tokens.begin(), tokens.end()};
  std::vector<uint32_t> out = store->within(tokens);
  std::ranges::replace_if(out, is_image_token, image_row);
  return out;
}

Result<void> ImageInputs::write_spans(gpu::Device& device, uint32_t row, uint32_t pos,
                                      std::span<const uint32_t> tokens) const {
  if (!spans) return {};
  const uint64_t offset = row * kernels::kSpanBytes;
  DP_CHECK(device.write(*spans, offset, bytes_of(store->spans(pos, tokens, 0))));
  return device.write(*window_spans, offset, bytes_of(store->spans(pos, tokens, window)));
}

void ImageInputs::take(const std::shared_ptr<const HeldImage>& image) const { store->take(image); }

uint32_t ImageInputs::uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const {
  return spans ? store->uncut_rows(tokens, rows) : rows;
}

uint32_t ImageInputs::shift_behind(std::span<const uint32_t> tokens) const {
  return axes ? store->shift_behind(0, tokens) : 0;
}

Result<void> ImageInputs::write_shift(gpu::Device& device, uint32_t slot, uint32_t shift) const {
  if (!shifts) return {};
  return device.write(*shifts, steps_bytes + slot * kernels::kShiftBytes, bytes_of(shift));
}

}  // namespace doppler::model
