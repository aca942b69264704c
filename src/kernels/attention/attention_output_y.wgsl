// The result of a decode kernel: f32 y, which the kernel binds as `result`. Siblings with the same two functions:
// output_y_q8, output_partial.
//!import attention/attention_normalise

fn put(split: u32, first_head: u32, h: u32, d: u32, weighted: f32, highest: f32, sum: f32) {
  let head = first_head + h;
  result[head * HEAD_DIM + d] = normalise(head, weighted, highest, sum);
}

// Called by all invocations once everything is put.
fn finish(thread: u32, first_head: u32, heads: u32) {}
