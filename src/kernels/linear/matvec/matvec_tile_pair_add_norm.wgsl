// matvec_tile_pair for an x that is still to be made of a residual and a branch: see linear/matvec/tile_x_add_norm.
// Map: a workgroup makes ROWS outputs of one of the weights, see linear/matvec/tile_sum.
// Error: as matvec_tile.
// Read next: linear/matvec/tile_x_add_norm.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_sum as second_
//!import linear/matvec/invocation

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> second_weights: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> second_scales: array<u32>;
@group(0) @binding(4) var<storage, read> residual: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> branch: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> add_weight: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, own: Invocation) {
  let local = local_of(own);
  let row = group.x * ROWS + local % ROWS;
  var sum = 0.0;
  if (group.x * ROWS < FIRST_ROWS) {
    sum = reduce_slices(local, vec2<f32>(slice_sum(row, local, group.x), 0.0)).x * norm_factor();
  } else {
    // The second weight's x, and with it the sums of its norm, lies in memory of its own.
    sum = second_reduce_slices(local, vec2<f32>(second_slice_sum(row - FIRST_ROWS, local, group.x), 0.0)).x *
          second_norm_factor();
  }
  if (local < ROWS) { y[row] = sum; }
}
