// The two weight rows that a group of invocations multiplies, and the place of their sums.
//!import linear/linear_epilogue
//!import linear/matvec/matvec_gate

// The two weight rows of a group: the gate and its up row, or two neighbours. `index` counts groups of the piece;
// rows past the end repeat the last one and are not written.
fn two_rows(index: u32) -> vec2<u32> {
  if (ACTIVATE != 0u) {
    let row = min(index, params.rows - 1u);
    return vec2<u32>(row, row + params.gate_rows);
  }
  return min(vec2<u32>(2u * index, 2u * index + 1u), vec2<u32>(params.rows - 1u));
}

fn finish_two(index: u32, sums: vec2<f32>) {
  if (ACTIVATE != 0u) {
    if (index < params.rows) { finish_gate(index, sums.x, sums.y, params.y_first + index); }
    return;
  }
  let row = 2u * index;
  if (row < params.rows) { finish(row, sums.x, params.y_first + row); }
  if (row + 1u < params.rows) { finish(row + 1u, sums.y, params.y_first + row + 1u); }
}
