// As attention_quad_y, for a split's part: weighted values, highest logit and sum, in the layout of
// attention_output_partial.
//!import attention/attention_logit

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  if (!is_active) { return; }
  let at = split * ALL_HEADS + head;
  for (var i = 0u; i < 4u; i++) { result[at * 8u * D8 + 4u * quad + i] = found.weighted[i]; }
  if (quad == 0u) {
    let pair = SPLITS * ALL_HEADS * 8u * D8 + at * 2u;
    result[pair] = found.highest;
    result[pair + 1u] = found.sum;
  }
}
