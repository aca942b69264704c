// Where a split puts its part: weighted values, highest logit and sum, for attention_combine.wgsl, in the scratch buffer bound as `result`.
// Layout, all f32: [SPLITS, ALL_HEADS, HEAD_DIM] weighted values, then [SPLITS, ALL_HEADS] pairs (highest, sum).
//!import attention/attention_logit

fn put(split: u32, first_head: u32, h: u32, d: u32, weighted: f32, highest: f32, sum: f32) {
  let at = split * ALL_HEADS + first_head + h;
  result[at * HEAD_DIM + d] = weighted;
  if (d == 0u) {
    let pair = SPLITS * ALL_HEADS * HEAD_DIM + at * 2u;
    result[pair] = highest;
    result[pair + 1u] = sum;
  }
}

// Called by all invocations once everything is put.
fn finish(thread: u32, first_head: u32, heads: u32) {}
