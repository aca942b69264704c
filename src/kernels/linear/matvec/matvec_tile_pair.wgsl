// y = x W^T for one row of x and two weights in different tile formats, the second's outputs after the first's: q and k
// beside v. x may be the input of an RMS norm whose division is still to be done (NORMED), and both may have a bias.
// Map: a workgroup makes ROWS outputs of one weight, see linear/matvec/tile_sum.
// Error: as matvec_tile.
// Read next: linear/matvec/tile_sum, linear/matvec/tile_norm.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_sum as second_
//!import linear/matvec/tile_norm

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> second_weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> second_scales: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<XElement>;
@group(0) @binding(5) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> square_sums: array<f32>;
@group(0) @binding(7) var<storage, read> bias: array<f32>;  // of both
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let row = group.x * ROWS + local % ROWS;
  var sum = 0.0;
  if (group.x * ROWS < FIRST_ROWS) {
    let share = slice_sum(row, local, group.x);
    gather_norm(local);
    sum = reduce_slices(local, vec2<f32>(share, 0.0)).x;
  } else {
    let share = second_slice_sum(row - FIRST_ROWS, local, group.x);
    gather_norm(local);
    sum = second_reduce_slices(local, vec2<f32>(share, 0.0)).x;
  }
  if (local < ROWS) {
    var value = sum * norm_factor();
    if (HAS_BIAS) { value += bias[row]; }
    y[row] = value;
  }
}
