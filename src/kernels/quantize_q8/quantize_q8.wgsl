// x [rows, k] f32 -> 8-bit blocks of 16 (common/forms.h), if the producer of x did not write them itself.
// Map: a workgroup makes WORKGROUP * 4 consecutive values of one row (y of the grid), an invocation makes four.
// Shared: the maxima and sums of the blocks (common/q8_store, with its barriers).
// Error: q is x * (127 / max|x|) rounded to nearest even.
//!import common/q8_store
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y_q8: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  let word = group.y * (K / 4u) + column;
  let inside = 4u * column < K;
  var values = vec4<f32>();
  if (inside) { values = x[word]; }
  store_q8(t, word, values, inside);
}
