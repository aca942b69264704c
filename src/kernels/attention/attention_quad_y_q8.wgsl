// As attention_quad_y, and y as 8-bit blocks of 16 (common/forms.h): four neighbouring invocations make one. head_dim
// is a multiple of 32, so that no block belongs to two heads. Bindings of the entry: y_q8. Consts: Q8_PLANE1.
//!import attention/attention_normalise
//!import common/q8_block

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  var value: vec4f;
  for (var i = 0u; i < 4u; i++) { value[i] = normalise(head, found.weighted[i], found.highest, found.sum); }
  let four = max(max(abs(value.x), abs(value.y)), max(abs(value.z), abs(value.w)));
  let eight = max(four, subgroupShuffleXor(four, 1u));
  let largest = max(eight, subgroupShuffleXor(eight, 2u));
  let q = q8_quantise(value, largest);
  let sum4 = (q.x + q.y) + (q.z + q.w);
  let sum8 = sum4 + subgroupShuffleXor(sum4, 1u);
  let sum16 = sum8 + subgroupShuffleXor(sum8, 2u);
  if (!is_active) { return; }
  let word = head * HEAD_DIM / 4u + quad;
  for (var i = 0u; i < 4u; i++) { result[4u * word + i] = value[i]; }
  y_q8[word] = q8_word(q);
  if (quad % 4u == 0u) {
    let d = largest / 127.0;
    let at = Q8_PLANE1 + word / 4u * 2u;
    y_q8[at] = bitcast<u32>(d);
    y_q8[at + 1u] = bitcast<u32>(d * f32(sum16));
  }
}
