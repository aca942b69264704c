// y = x W^T for a chunk of rows and few outputs, in f32: small tiles, so that a large GPU has workgroups enough.
// Map: a workgroup of 256 makes 16 rows of x (y of the grid) by 16 weight rows (x), an invocation one sum. Shared: 64
// columns of both, a padded row after the other; an invocation brings eight columns of one row, and has the next eight
// in registers.
// Error: f32 sums of k products, relative L2 below 1e-5. Read next: linear/matmul/matmul_tile.
//!import linear/matmul/matmul_bindings
//!import linear/weights/format
//!import linear/x
//!import linear/linear_epilogue

const TILE = 16u;
const EIGHTS = 8u;  // of a row at a time
const STRIDE = 2u * EIGHTS + 1u;  // vec4 from row to row: rows begin in different banks
const W_TILE = TILE * STRIDE;     // where the weights begin in `tile`

var<workgroup> tile: array<vec4<f32>, 2u * TILE * STRIDE>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let rows = state.rows;
  let row0 = group.y * TILE;
  let column0 = group.x * TILE;
  // This invocation's rows: rows past the end repeat the last one and are not written.
  let is_weight = local >= 128u;
  let staged = local / EIGHTS % TILE;
  let eight = local % EIGHTS;
  let x_row = min(row0 + staged, rows - 1u);
  let w_row = min(column0 + staged, params.rows - 1u);
  let last_eight = (params.k + 7u) / 8u - 1u;
  let to = staged * STRIDE + 2u * eight + select(0u, W_TILE, is_weight);
  let steps = (params.k / 8u + EIGHTS - 1u) / EIGHTS;
  let tn = local % TILE;
  let tm = local / TILE;
  var next: mat2x4<f32>;
  // Past the end x is zero, and any finite weight will do.
  if (is_weight) { next = weight8(w_row, min(eight, last_eight)); } else { next = x8(x_row, eight); }
  var sum = 0.0;
  for (var step = 0u; step < steps; step++) {
    tile[to] = next[0];
    tile[to + 1u] = next[1];
    workgroupBarrier();  // the columns are complete
    let i = (step + 1u) * EIGHTS + eight;
    if (is_weight) { next = weight8(w_row, min(i, last_eight)); } else { next = x8(x_row, i); }
    for (var q = 0u; q < 2u * EIGHTS; q++) {
      sum += dot(tile[tm * STRIDE + q], tile[W_TILE + tn * STRIDE + q]);
    }
    workgroupBarrier();  // all invocations have read the tiles
  }
  if (row0 + tm < rows && column0 + tn < params.rows) {
    finish(column0 + tn, sum, (row0 + tm) * params.y_stride + params.y_first + column0 + tn);
  }
}
