// Where attention puts a head inside persistent_layers: into `values`, then as 8-bit blocks to the workgroups that make
// the output product. In the place of attention_quad_y, with its function. Set before: sent_at (in `exchange`).
//!import persistent/persistent_block

var<private> sent_at: u32;

fn put_quad(split: u32, head: u32, quad: u32, found: Quad, is_active: bool) {
  if (is_active) {
    for (var i = 0u; i < 4u; i++) { values[4u * quad + i] = found.weighted[i] / found.sum; }
  }
}

// Called by all invocations once everything is put.
fn send_head(head: u32, thread: u32, invocation: u32) {
  workgroupBarrier();
  for (var first = 0u; first < HEAD_DIM; first += WORKGROUP * one()) {
    var value = 0.0;
    if (first + thread < HEAD_DIM) { value = values[first + thread]; }
    let word = word_of_block(first + thread, invocation, value, 0.0);
    let j = thread & 15u;
    if (first + thread < HEAD_DIM && j < kSquaresWord) {
      send(sent_at + j * (N_HEADS * HEAD_DIM / 16u) + (head * HEAD_DIM + first + thread) / 16u, word);
    }
  }
}
