// Some rows of a weight from the blocks of the file to a tile format (base/dtype.h), on the GPU, at load. Bit for bit
// formats/quant/repack.h's repack_tiles(), except that a scale that is no number or infinite counts as 2^16 or more.
// Bound by memory: it reads the file's bytes once and writes the tiles once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.h"
#include "kernels/context.h"
#include "kernels/linear/linear.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct Repack {
  DType from;
  WeightFormat to;  // what can_repack() allows for `from`
  uint32_t k = 0;   // whole blocks, and so whole units of 32
  TensorView raw;   // `rows` rows as in the file, from its first byte on; rounded up to whole words
  uint32_t rows = 0;
  WeightPiece piece;  // where they go
  uint32_t first_row =
      0;  // ... in the piece, a multiple of kTileRows; rows that fill up the last tile become zero
};
// One dispatch. At most caps.max_workgroups tiles.
Result<void> record(Context& ctx, const Repack& op);

bool can_repack(DType from, WeightFormat to);

// One row a type of the file; the operation they are forced by is "repack.<type>".
struct RepackTypes {
  DType from;
  std::string_view block;  // fragment that reads a unit; DTypeInfo::tiles says the resulting format
};
struct RepackRow : Variant<Repack>, RepackTypes {};
std::span<const RepackRow> repack_variants();            // all
std::span<const RepackRow> repack_variants(DType from);  // none: cannot be repacked
std::string repack_operation(DType from);

}  // namespace doppler::kernels
