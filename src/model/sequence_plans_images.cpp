// SequencePlans' pictures: which pieces share a step, and what a step with pictures writes first.
#include <algorithm>

#include "base/bytes.h"
#include "model/sequence_plans.h"

namespace doppler::model {

bool SequencePlans::may_join(std::span<const Piece> pieces, const Piece& piece) const {
  const ImageStore* const store = buffers_.images.store;
  if (!store || pieces.empty()) return true;
  uint64_t rows = store->rows_named_by(piece.tokens);
  for (const Piece& other : pieces) rows += store->rows_named_by(other.tokens);
  return rows <= store->capacity();
}

Result<bool> SequencePlans::write_images(std::span<const uint32_t> decoding, std::span<const Piece> pieces) {
  const ImageInputs& images = buffers_.images;
  const auto has_image = [](const Piece& piece) { return std::ranges::any_of(piece.tokens, is_image_token); };
  if (!images.store || std::ranges::none_of(pieces, has_image)) return false;
  std::vector<uint32_t> tokens(decoding.size()), axes;  // those of decoding rows are text
  for (const uint32_t slot : decoding) {
    const uint32_t shift = slots_[slot].shift;
    axes.insert(axes.end(), {shift, shift, shift, 0u});
  }
  for (const Piece& piece : pieces) {
    Slot& slot = slots_[piece.slot];
    DP_CHECK(images.write_spans(device_, static_cast<uint32_t>(tokens.size()), piece.pos, piece.tokens));
    tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
    std::vector<uint32_t> own = images.store->axes(slot.shift, piece.tokens);
    axes.insert(axes.end(), own.begin(), own.end());
    DP_CHECK(images.write_shift(device_, piece.slot, slot.shift));
  }
  DP_TRY(const std::vector<uint32_t> places, images.store->places(tokens));
  DP_CHECK(device_.write(*images.places, 0, bytes_of(places)));
  if (images.axes) DP_CHECK(device_.write(*images.axes, images.steps_bytes, bytes_of(axes)));
  return true;
}

}  // namespace doppler::model
