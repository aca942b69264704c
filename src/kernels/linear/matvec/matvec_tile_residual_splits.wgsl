// matvec_tile_residual for an x that is still to be reduced from the splits of attention: see
// linear/matvec/tile_splits. Map: a workgroup makes ROWS outputs, see linear/matvec/tile_sum. Error: as matvec_tile.
// Read next: linear/matvec/tile_splits. Twin: matvec_tile_residual.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_block
//!import linear/matvec/invocation

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> state: StepState;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;  // h, then the sums at H_SUMS

var<workgroup> before: array<vec2<f32>, ROWS>;  // y with its bias, norm_weight

fn load_before(row: u32, local: u32) -> vec2<f32> {
  var value = y[row];
  if (HAS_BIAS) { value += bias[row]; }
  return vec2<f32>(value, norm_weight[row]);
}

fn stage_before(local: u32, early: vec2<f32>) {
  if (local < ROWS) { before[local] = early; }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, own: Invocation) {
  let local = local_of(own);
  let row = group.x * ROWS + local % ROWS;
  let sum = reduce_slices(local, vec2<f32>(slice_sum(row, local, group.x), 0.0)).x;
  var value = 0.0;
  var weight = 0.0;
  if (local < ROWS) {
    value = before[local].x + sum;
    weight = before[local].y;
    y[row] = value;
    if (!H_IS_Q8) { y_q8[row] = bitcast<u32>(value * weight); }
  }
  if (H_IS_Q8) { store_blocks(local, group.x, value * weight); }
  let total = block_total(local, value * value);
  if (local < ROWS && (local & 15u) == 0u) { y_q8[H_SUMS + (group.x * ROWS + local) / 16u] = bitcast<u32>(total); }
}
