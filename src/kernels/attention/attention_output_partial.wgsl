// The place where a split puts its part: weighted values, highest logit and sum, in the scratch buffer bound as
// `result`, for attention_combine or the product that reduces them (linear/matvec/tile_splits).
// Layout, all f32: [SPLITS, ALL_HEADS, 8 * D8] weighted values, then [SPLITS, ALL_HEADS] pairs (highest, sum). Values
// past HEAD_DIM mean nothing (readers load aligned fours).
//!import attention/attention_logit

fn put(split: u32, first_head: u32, h: u32, d: u32, weighted: f32, highest: f32, sum: f32) {
  let at = split * ALL_HEADS + first_head + h;
  result[at * 8u * D8 + d] = weighted;
  if (d == 0u) {
    let pair = SPLITS * ALL_HEADS * 8u * D8 + at * 2u;
    result[pair] = highest;
    result[pair + 1u] = sum;
  }
}

// Called by all invocations once everything is put.
fn finish(thread: u32, first_head: u32, heads: u32) {}
