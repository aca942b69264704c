// Copies tokens that plain steps chose from the ring into the text. One workgroup in all. Contract: lookup.h.
// Consts: WORKGROUP, TOKEN_RING.
//!import common/step_state
//!import step/draft_text
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;
@group(0) @binding(2) var<storage, read> ring: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  let first = max(text.length, text.written);
  let base = text.base;
  storageBarrier();
  workgroupBarrier(); // all have read `length`
  if (state.stop_reason != 0u) { // kRunning
    return;
  }
  for (var back = t; back < TOKEN_RING && first + back <= state.pos; back += WORKGROUP) {
    text.tokens[base + state.pos - back] = ring[(state.ring_index - 1u - back) % TOKEN_RING];
  }
  if (t == 0u) {
    text.length = state.pos + 1u;
  }
}
