// A head's result in `values` as 8-bit blocks to the workgroups that make the output product. Set before: sent_at.
//!import persistent/persistent_block

var<private> sent_at: u32;  // in `exchange`

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
