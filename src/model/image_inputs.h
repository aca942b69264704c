// A step over a prompt writes these inputs for the rows that stand for pictures.
#pragma once

#include <span>
#include <vector>

#include "model/image_store.h"

namespace doppler::model {

struct ImageInputs {
  ImageStore* store = nullptr;  // null: the model was loaded without pictures
  gpu::Buffer* places = nullptr;
  // Multi-axis positions: the tables of RopePlaces::kAxes and kShifted. null: the model has one axis.
  gpu::Buffer *axes = nullptr, *shifts = nullptr;
  uint64_t steps_bytes = 0;  // of the pairs' steps, which come first in both
  // Models in which a picture's tokens see each other: the tables of lowering::SpansIo. null: other models.
  gpu::Buffer *spans = nullptr, *window_spans = nullptr;
  uint32_t window = 0;     // of layers that slide
  uint32_t image_row = 0;  // formats::LayerInputConfig::image_row

  // True if a step over `tokens` from position `pos` on has pictures; then its inputs are written. `shift` is that of
  // the first token (ImageStore::axes) and becomes that after the last.
  Result<bool> write(gpu::Device& device, uint32_t pos, std::span<const uint32_t> tokens,
                     uint32_t& shift) const;
  // The tokens whose embeddings a step reads. Those of pictures have none, and layers read those of image_row for them.
  std::vector<uint32_t> embedded(std::span<const uint32_t> tokens) const;
  // Writes the spans of a step's rows from `row` on.
  Result<void> write_spans(gpu::Device& device, uint32_t row, uint32_t pos,
                           std::span<const uint32_t> tokens) const;
  // SequenceRunner::take_image() and uncut_rows().
  void take(const std::shared_ptr<const HeldImage>& image) const;
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const;
  // The shift after a text.
  uint32_t shift_behind(std::span<const uint32_t> tokens) const;
  // The shift of a slot's rows from the next step on.
  Result<void> write_shift(gpu::Device& device, uint32_t slot, uint32_t shift) const;
};

}  // namespace doppler::model
