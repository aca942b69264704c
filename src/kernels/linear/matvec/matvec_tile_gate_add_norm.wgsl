// matvec_tile_gate for an x that is still to be made of a residual and a branch: see linear/matvec/tile_x_add_norm. y
// only as 8-bit blocks. Map: a workgroup makes ROWS outputs from as many gates and ups, see linear/matvec/tile_sum.
// Error: as matvec_tile. Read next: linear/matvec/tile_x_add_norm, linear/matvec/tile_block.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_block
//!import linear/matvec/invocation
//!import common/activate

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> residual: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> branch: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> add_weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, own: Invocation) {
  let local = local_of(own);
  let row = group.x * ROWS + local % ROWS;
  let sums = reduce_slices(local, slice_sums(row, row + GATE_ROWS, local, group.x));
  var value = 0.0;
  if (local < ROWS) {
    let both = sums * norm_factor();
    value = activate(both.x) * both.y;
  }
  store_blocks(local, group.x, value);
}
