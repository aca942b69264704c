// A workgroup's 32 outputs, one of each of its first 32 invocations, as one 8-bit block (common/activation.h).
// Binding of the entry: y_q8. Consts: Q8_PLANE1.
//!import common/q8_block

var<workgroup> block_values: array<vec4<f32>, 8>;
var<workgroup> block_sums: array<i32, 8>;

// Contains barriers: every invocation of the workgroup calls it.
fn store_block(local: u32, block: u32, value: f32) {
  if (local < 32u) { block_values[local >> 2u][local & 3u] = value; }
  workgroupBarrier();  // eight invocations take four values each, and the largest of all
  var d = 0.0;
  if (local < 8u) {
    var most = vec4<f32>(0.0);
    for (var i = 0u; i < 8u; i++) { most = max(most, abs(block_values[i])); }
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    d = largest / 127.0;
    let q = q8_quantise(block_values[local], largest);
    y_q8[8u * block + local] = q8_word(q);
    block_sums[local] = q.x + q.y + q.z + q.w;
  }
  workgroupBarrier();  // block_sums
  if (local == 0u) {
    var sum = 0;
    for (var i = 0u; i < 8u; i++) { sum += block_sums[i]; }
    y_q8[Q8_PLANE1 + 2u * block] = bitcast<u32>(d);
    y_q8[Q8_PLANE1 + 2u * block + 1u] = bitcast<u32>(d * f32(sum));
  }
}
