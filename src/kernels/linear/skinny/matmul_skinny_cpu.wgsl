// y = x W^T for 2 to BATCH rows of x, shaped for a CPU (lavapipe): no barriers, no shared memory.
// Map: an invocation makes PAIR outputs, THREADS apart, of every row of x, unit by unit of columns.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: linear/skinny/skinny_sums, linear/skinny/skinny_unit_q8. Twin: matmul_skinny.
//!import linear/skinny/skinny_bindings
//!import linear/skinny/skinny_sums
//!import linear/linear_epilogue

// Rows first.. of x.
fn finish_four(four: vec4<f32>, first: u32, output: u32, rows: u32) {
  for (var i = 0u; i < min(4u, BATCH); i++) {
    if (output < OUTPUTS && first + i < rows) {
      finish(output, four[i], (first + i) * Y_STRIDE + Y_FIRST + output);
    }
  }
}

fn finish_fours(four: Four, first: u32, output: u32, rows: u32) {
  finish_four(four.own, first, output, rows);
  if (PAIR == 2u) { finish_four(four.other, first, output + OTHER_ROW, rows); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let output = (id.y * GROUPS_X + id.x) * GROUP_ROWS + local;
  if (output >= OUTPUTS) { return; }
  let rows = state.rows;
  let other = min(output + OTHER_ROW, OUTPUTS - 1u);
  var sums: Sums;
  for (var u = 0u; u < UNITS; u++) {
    let w = fetch(output, u);
    var o: Fetched;
    if (PAIR == 2u) { o = fetch(other, u); }
    sums = add_unit(sums, w, o, u, rows);
  }
  finish_fours(sums.a, 0u, output, rows);
  if (BATCH > 4u) { finish_fours(sums.b, 4u, output, rows); }
  if (BATCH > 8u) {
    finish_fours(sums.c, 8u, output, rows);
    finish_fours(sums.d, 12u, output, rows);
  }
}
