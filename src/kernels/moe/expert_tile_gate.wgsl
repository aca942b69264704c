// y = activate(gate) * up of a row's experts, for weights in a tile format: all experts' gates, then all experts' ups.
// y may be f32, 8-bit blocks or both, a slot after the other.
// Map: a workgroup makes ROWS outputs of one slot from as many gates and ups, see linear/matvec/tile_sum.
// Error: as expert_tile. Read next: moe/expert_place, linear/matvec/tile_block.
//!import linear/matvec/tile_sum
//!import linear/matvec/tile_block
//!import linear/matvec/invocation
//!import common/activate
//!import moe/expert_of
//!import moe/expert_place

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> routes: array<u32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> y_q8: array<u32>;

fn load_before(row: u32, local: u32) -> f32 { return 0.0; }
fn stage_before(local: u32, early: f32) {}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, own: Invocation) {
  let local = local_of(own);
  let expert = expert_of(group);
  x_row = x_row_of(group);
  let output = group.x * ROWS + local % ROWS;
  let gate_row = weight_row(output, expert);
  let up_row = weight_row(N + output, expert);
  let sums = reduce_slices(local, slice_sums(gate_row, up_row, local, group.x));
  var value = 0.0;
  let slot = group.z * N_USED + group.y;
  if (local < ROWS) {
    var both = sums;
    if (HAS_BIAS) { both += vec2<f32>(bias[gate_row], bias[up_row]); }
    value = activate(both.x) * both.y;
    if (HAS_Y) { y[slot * N + output] = value; }
  }
  if (HAS_Q8) { store_blocks(local, slot * (N / ROWS) + group.x, value); }
}
