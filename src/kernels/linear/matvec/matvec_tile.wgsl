// y = x W^T for one row of x and weights in a tile format (base/dtype.h). x may be the input of an RMS norm whose
// division is still to be done (NORMED): the sums are then divided here.
// Map: a workgroup makes ROWS outputs, see linear/matvec/tile_sum.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: linear/matvec/tile_sum, linear/matvec/tile_norm.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_norm

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> square_sums: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let index = group.y * GROUPS_X + group.x;
  let first = index * ROWS;
  if (first >= N) { return; }  // the grid, folded over y, may have more
  let row = first + local % ROWS;
  let share = slice_sum(row, local, index);
  gather_norm(local);
  let sum = reduce_slices(local, vec2<f32>(share, 0.0)).x;
  if (local >= ROWS || row >= N) { return; }
  var value = sum * norm_factor();
  if (HAS_BIAS) { value += bias[FIRST_ROW + row]; }
  if (ACCUMULATE) { value += y[Y_FIRST + row]; }
  y[Y_FIRST + row] = value;
}
