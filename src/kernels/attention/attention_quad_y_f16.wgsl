// Like attention_quad_y, but y is only f16 in tiles (common/forms.h), which it binds as y_q8. head_dim is a multiple of
// 16.
//!import attention/attention_normalise
//!import common/f16_quad

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  if (!is_active) { return; }
  var value: vec4f;
  for (var i = 0u; i < 4u; i++) { value[i] = normalise(head, found.weighted[i], found.highest, found.sum); }
  let words = f16_quad(value);
  let at = 2u * f16_quad_at(head / N_HEADS, head % N_HEADS * HEAD_DIM + 4u * quad);
  y_q8[at] = words.x;
  y_q8[at + 1u] = words.y;
}
