// y = x W^T of a row's experts, for weights in a tile format (base/dtype.h).
// Map: a workgroup makes ROWS outputs of one slot, see linear/matvec/tile_sum; an expert's outputs are whole tiles.
// Error: f32 sums of k products, relative L2 below 1e-5 (with 8-bit activations: of the same sums in double).
// Read next: moe/expert_place, linear/matvec/tile_sum.
//!import linear/matvec/tile_sum
//!import moe/expert_of
//!import moe/expert_place

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<XElement>;
@group(0) @binding(3) var<storage, read> x_scales: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> routes: array<u32>;
@group(0) @binding(5) var<storage, read> bias: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

fn load_before(row: u32, local: u32) -> f32 { return 0.0; }
fn stage_before(local: u32, early: f32) {}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let expert = expert_of(group);
  if (!is_in_piece(expert)) { return; }
  x_row = x_row_of(group);
  let output = group.x * ROWS + local % ROWS;
  let row = weight_row(output, expert) - PIECE_FIRST;
  let sum = reduce_slices(local, vec2<f32>(slice_sum(row, local, group.x), 0.0)).x;
  if (local < ROWS) { store_output(group, output, expert, sum); }
}
