// y = x W^T for one row of x and weights in a tile format (base/dtype.h).
// Map: a workgroup makes the 32 outputs of a tile (of two tiles, with a gate). An invocation owns one row, so that
// neighbours read neighbouring words, and every SLICES-th unit of 32 columns; the activations are the same for all
// 32 rows. Shared: one partial sum per invocation.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: matvec/unit_x_q8, weights/README.md.
//!import matvec/matvec_bindings
//!import weights/format
//!import matvec/unit_x
//!import linear/linear_epilogue
//!import matvec/matvec_gate

const TILE = 32u;

var<workgroup> partial: array<vec2<f32>, SLICES * TILE>;

@compute @workgroup_size(SLICES * TILE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let tile = group.y * params.groups_x + group.x;
  if (tile * TILE >= params.rows) { return; }  // the grid, folded over y, may have more
  let slice = local / TILE;
  let row = tile * TILE + local % TILE;
  var sum = vec2<f32>(0.0);
  for (var u = slice; u < params.units; u += SLICES) {
    let v = load_x(0u, u);
    sum.x += dot_x(row, u, v);
    if (ACTIVATE != 0u) { sum.y += dot_x(row + params.gate_rows, u, v); }
  }
  partial[local] = sum;
  workgroupBarrier();  // all slices of the tile are summed below
  if (slice != 0u || row >= params.rows) { return; }
  for (var i = 1u; i < SLICES; i++) { sum += partial[i * TILE + local]; }
  if (ACTIVATE != 0u) {
    finish_gate(row, sum.x, sum.y, params.y_first + row);
  } else {
    finish(row, sum.x, params.y_first + row);
  }
}
