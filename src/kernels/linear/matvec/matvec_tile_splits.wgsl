// matvec_tile for an x that is still to be reduced from the splits of attention: see linear/matvec/tile_splits.
// Map: a workgroup makes ROWS outputs, see linear/matvec/tile_sum.
// Error: as matvec_tile.
// Read next: linear/matvec/tile_splits.
//!import linear/matvec/tile_sum

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> state: StepState;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// linear/matvec/tile_sum calls these: nothing besides x.
fn load_before(row: u32, local: u32) -> u32 { return 0u; }
fn stage_before(local: u32, early: u32) {}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let row = group.x * ROWS + local % ROWS;
  var value = reduce_slices(local, vec2<f32>(slice_sum(row, local, group.x), 0.0)).x;
  if (local >= ROWS) { return; }
  if (HAS_BIAS) { value += bias[row]; }
  if (ACCUMULATE) { value += y[Y_FIRST + row]; }
  y[Y_FIRST + row] = value;
}
