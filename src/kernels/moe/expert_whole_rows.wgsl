// y = x W^T of a row's experts, shaped for a CPU (lavapipe): no barriers, no shared memory.
// Map: an invocation makes ROWS whole outputs, over units of 32 columns, so that it loads x once for all outputs.
// Needs k a multiple of 32. Error: relative L2 below 1e-5. Read next: moe/expert_place,
// linear/matvec/matvec_whole_rows.
//!import moe/expert_bindings
//!import moe/expert_of
//!import moe/expert_place
//!import linear/weights/format
//!import linear/matvec/unit_x

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let expert = expert_of(group);
  let first = (group.x * WORKGROUP + local) * ROWS;
  if (first >= kOutputs || !is_in_piece(expert)) { return; }
  let x_row = x_row_of(group);
  var rows: array<u32, ROWS>;
  // Outputs past the end repeat the last one and are not written.
  for (var r = 0u; r < ROWS; r++) { rows[r] = weight_row(min(first + r, kOutputs - 1u), expert) - PIECE_FIRST; }
  var sum: array<f32, ROWS>;
  for (var u = 0u; u < UNITS; u++) {
    let v = load_x(x_row, u);
    for (var r = 0u; r < ROWS; r++) { sum[r] += dot_x(rows[r], u, v); }
  }
  for (var r = 0u; r < ROWS; r++) { store_output(group, first + r, expert, sum[r]); }
}
