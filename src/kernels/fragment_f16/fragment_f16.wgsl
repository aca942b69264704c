// x [rows, k] f32 -> f16 in tiles (common/forms.h), if the producer of x did not write them itself.
// Map: a workgroup makes WORKGROUP * 4 consecutive values of one row (y of the grid), an invocation makes four.
// Error: rounded to nearest by pack2x16float.
//!import common/f16_store
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y_f16: array<vec2<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let quad = group.x * WORKGROUP + t;
  if (4u * quad < F16_COLUMNS) {
    store_f16_quad(group.y, 4u * quad, x[group.y * (F16_COLUMNS / 4u) + quad]);
  }
}
