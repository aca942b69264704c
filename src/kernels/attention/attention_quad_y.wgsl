// Where decode attention with subgroup operations puts four neighbouring values of a head: f32 y, which it binds as
// `result`. Siblings with the same function: attention_quad_y_q8, attention_quad_y_f16,
// attention_quad_partial.
//!import attention/attention_normalise

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  for (var i = 0u; i < 4u; i++) {
    let d = 4u * quad + i;
    let value = normalise(head, found.weighted[i], found.highest, found.sum);
    if (is_active && d < HEAD_DIM) { result[head * HEAD_DIM + d] = value; }
  }
}
