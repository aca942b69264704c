// Where a decode kernel puts its result: f32 y (bound as `result`), and y as q8 (layout: common/forms.h).
// head_dim is a multiple of 32, so that no block belongs to two workgroups.
// y_tile collects the workgroup's heads; the barrier in finish() lies between its writers and readers.
//!import attention/attention_normalise
//!import common/q8_store
var<workgroup> y_tile: array<f32, HEADS * HEAD_DIM>;

fn put(split: u32, first_head: u32, h: u32, d: u32, weighted: f32, highest: f32, sum: f32) {
  let head = first_head + h;
  let value = normalise(head, weighted, highest, sum);
  result[head * HEAD_DIM + d] = value;
  y_tile[h * HEAD_DIM + d] = value;
}

// Called by all invocations once everything is put.
fn finish(thread: u32, first_head: u32, heads: u32) {
  workgroupBarrier();
  let words = heads * HEAD_DIM / 4u;
  for (var base = 0u; base < words; base += WORKGROUP) {
    let word = base + thread;
    let at = min(word, words - 1u) * 4u;
    let values = vec4f(y_tile[at], y_tile[at + 1u], y_tile[at + 2u], y_tile[at + 3u]);
    store_q8(thread, first_head * HEAD_DIM / 4u + word, select(vec4f(), values, word < words), word < words);
  }
}
