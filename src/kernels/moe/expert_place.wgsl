// Where a workgroup's outputs come from and go to: y of the grid is the slot, z the row of x. An output is one of
// MATRICES * N of an expert. Consts: N, MATRICES, N_EXPERTS, N_USED, X_PER_SLOT, PIECE_FIRST and PIECE_ROWS (of the
// weight's rows), HAS_BIAS, Y_STRIDE, Y_COLUMN. Bindings of the entry: bias, y.

const kOutputs = MATRICES * N;

// Pieces hold whole experts, and two matrices lie in one.
fn is_in_piece(expert: u32) -> bool { return expert * N >= PIECE_FIRST && expert * N < PIECE_FIRST + PIECE_ROWS; }

fn x_row_of(group: vec3<u32>) -> u32 {
  if (X_PER_SLOT) { return group.z * N_USED + group.y; }
  return group.z;
}

// The row of the weight that makes an output; one of the piece is PIECE_FIRST less.
fn weight_row(output: u32, expert: u32) -> u32 { return (output / N * N_EXPERTS + expert) * N + output % N; }

fn store_output(group: vec3<u32>, output: u32, expert: u32, sum: f32) {
  if (output >= kOutputs) { return; }
  var value = sum;
  if (HAS_BIAS) { value += bias[weight_row(output, expert)]; }
  y[group.z * Y_STRIDE + Y_COLUMN + (output / N * N_USED + group.y) * N + output % N] = value;
}
