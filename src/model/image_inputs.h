// What a step over a prompt writes for the rows that stand for pictures.
#pragma once

#include "model/image_store.h"

namespace doppler::model {

struct ImageInputs {
  ImageStore* store = nullptr;  // null: the model was loaded without pictures
  gpu::Buffer *places = nullptr, *axes = nullptr;
  uint64_t axes_offset = 0;    // of the first row
  bool counts_by_axes = false;  // multi-axis positions
  // Of texts whose tokens of a tile see each other (ImageStore::spans): in layers without a window, and in those with one;
  // null: of other texts.
  gpu::Buffer *spans = nullptr, *sliding_spans = nullptr;
  uint32_t window = 0;

  // Whether a step over `tokens` from position `pos` on has pictures; then its inputs are written. `shift`: of the
  // position of the first token (ImageStore::axes), which becomes that behind them.
  Result<bool> write(gpu::Device& device, std::span<const uint32_t> tokens, uint32_t pos, uint32_t& shift) const;
  // SequenceRunner::uncut_rows().
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const {
    return spans ? store->uncut_rows(tokens, rows) : rows;
  }
  // The shift behind a text.
  uint32_t shift_behind(std::span<const uint32_t> tokens) const {
    return counts_by_axes ? store->shift_behind(0, tokens) : 0;
  }
};

}  // namespace doppler::model
