// The rows of x in the order of the groups' places, as f16 in tiles (common/forms.h), for the matrix units.
// Map: a workgroup makes WORKGROUP * 4 consecutive values of one place (y of the grid), an invocation makes four.
// Places without a slot keep their values: their products are not used. Error: rounded to nearest by
// pack2x16float.
// Consts: WORKGROUP, F16_COLUMNS, N_USED, X_PER_SLOT, TILES.
//!import common/f16_store
@group(0) @binding(0) var<storage, read> groups: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y_f16: array<vec2<u32>>;

const kNoSlot = 0xFFFFFFFFu;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let quad = group.x * WORKGROUP + t;
  if (group.y >= groups[1] || 4u * quad >= F16_COLUMNS) { return; }
  let slot = groups[4u + 4u * TILES + group.y];
  if (slot == kNoSlot) { return; }
  let row = select(slot / N_USED, slot, X_PER_SLOT);
  store_f16_quad(group.y, 4u * quad, x[row * (F16_COLUMNS / 4u) + quad]);
}
