// A conversion as data: every tensor of the output, and its source tensors. Laid out in full, with every check, before
// a byte is written. Read next: outline.h (making one), piece.h (doing a part of one).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

// A tensor of the source with all its rows, and the changes that they get.
struct TensorPart {
  const TensorInfo* source = nullptr;
  // GGUF's llama rotates neighbours (2i, 2i+1), Hugging Face's halves (i, i + head_dim/2): row 2i+j of each head comes
  // from row i + j*head_dim/2. The number of heads; 0: rows stay in order.
  uint32_t interleaved_heads = 0;
  // The other way, for the first `halved_rows` rows of each head: row i + j*halved_rows/2 comes from row 2i+j. The
  // number of heads; 0: rows stay in order.
  uint32_t halved_heads = 0, halved_rows = 0;
  float plus = 0;  // added to every number: norms that are stored as w - 1
  // Heads of rows, or of columns, in another order: after the first `skipped`, head k * reps + r of a source of groups
  // * reps heads becomes head r * groups + k.
  struct HeadOrder {
    uint64_t skipped = 0, head_size = 0;  // 0: the source's order
    uint64_t groups = 1, reps = 1;
    uint64_t source_of(uint64_t place) const {
      if (place < skipped) return place;
      const uint64_t head = (place - skipped) / head_size, within = (place - skipped) % head_size;
      return skipped + (head % groups * reps + head / groups) * head_size + within;
    }
  };
  HeadOrder row_heads, column_heads;
  bool is_log = false;  // every number w becomes -exp(w): decays that are stored as logarithms
};

struct OutTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<uint64_t> shape;  // outermost first
  RdrrRole role = RdrrRole::kWeights;
  RdrrLayout layout = RdrrLayout::kRow;
  uint64_t source_index = 0;      // RDRR: place in the source's table
  std::vector<TensorPart> parts;  // their rows follow each other; empty: `numbers` are the content
  std::vector<float> numbers;     // f32
  std::vector<float> importance;  // per column, or per expert and column; empty: none
  bool matrix = false;            // of a kind that quantisation is for

  uint64_t k() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const;
  uint64_t bytes() const;  // by type, shape and layout
};

// Rows of one part (columns with RdrrLayout::kColumn) that are converted at once.
struct Piece {
  uint32_t tensor, part;
  uint64_t first, count;
};

struct Conversion {
  std::vector<OutTensor> tensors;  // in the output's order
  std::vector<std::string> notes;  // fallbacks and losses, each a sentence
};

}  // namespace doppler::formats
