// y = x W^T for one row of x, shaped for a CPU (lavapipe): no barriers, no shared memory.
// Map: an invocation makes ROWS whole outputs, over units of 32 columns, so that it loads x once for all outputs.
// Needs k a multiple of 32. Error: f32 sums of k products, relative L2 below 1e-5.
// Read next: linear/linear_epilogue.wgsl, linear/weights/README.md.
//!import linear/matvec/matvec_bindings
//!import linear/weights/format
//!import linear/matvec/unit_x
//!import linear/linear_epilogue
//!import linear/matvec/matvec_gate

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let first = ((group.y * params.groups_x + group.x) * WORKGROUP + local) * ROWS;
  if (first >= params.rows) { return; }
  var sum: array<f32, ROWS>;
  var up: array<f32, ROWS>;
  for (var u = 0u; u < params.units; u++) {
    let v = load_x(0u, u);
    for (var r = 0u; r < ROWS; r++) {
      // A row past the end repeats the last one and is not written.
      let row = min(first + r, params.rows - 1u);
      sum[r] += dot_x(row, u, v);
      if (ACTIVATE != 0u) { up[r] += dot_x(row + params.gate_rows, u, v); }
    }
  }
  for (var r = 0u; r < ROWS; r++) {
    if (first + r < params.rows) {
      if (ACTIVATE != 0u) {
        finish_gate(first + r, sum[r], up[r], params.y_first + first + r);
      } else {
        finish(first + r, sum[r], params.y_first + first + r);
      }
    }
  }
}
