// x[row] += positions[position of the row] + types[types of its token]: the learned embeddings of encoders (Devlin et
// al. 2018), in f32. A position or a type outside its table is that of the last row.
#pragma once

#include <span>

#include "kernels/context.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct Positions {
  TensorView x;          // f32 [rows, n]
  TensorView positions;  // f32 [n_positions, n]
  TensorView types;      // f32 [n_types, n]
  TensorView type_ids;   // u32 [rows]
  uint32_t n = 0, n_positions = 0, n_types = 0;
};
Result<void> record(Context& ctx, const Positions& op);

std::span<const Variant<Positions>> positions_variants();

}  // namespace doppler::kernels
