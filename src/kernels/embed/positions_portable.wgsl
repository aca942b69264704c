// x += positions[position of the row] + types[type of its token]. One workgroup makes WORKGROUP consecutive values of
// one row (y of the grid), one invocation one value. Nothing is shared. Exact but for the rounding of each sum.
//!import common/one_sequence
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> positions: array<f32>;
@group(0) @binding(2) var<storage, read> types: array<f32>;
@group(0) @binding(3) var<storage, read> type_ids: array<u32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let row = group.y;
  let position = min(row_position(row), N_POSITIONS - 1u);
  let kind = min(type_ids[row], N_TYPES - 1u);
  x[row * N + column] += positions[position * N + column] + types[kind * N + column];
}
