// Makes the rows of a drafting step from a match. One invocation in all, since the few words depend on each other.
// Contract: lookup.h.
// Consts: ROWS, VOCAB_SIZE, FILLS.
//!import common/step_state
//!import step/draft_text
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;

@compute @workgroup_size(1)
fn main() {
  let match_found = atomicLoad(&text.best);
  atomicStore(&text.best, 0u);
  let end = text.base + state.pos;
  let newest = text.tokens[end];
  text.rows[0] = newest;
  state.rows = 1u;
  if (state.stop_reason != 0u) { // kRunning
    return;
  }
  var most = min(ROWS, state.ctx_len - min(state.pos, state.ctx_len));
  if (match_found == 0u && !FILLS) {
    most = 1u;
  }
  let at = match_found & 0x7FFFFFFu;
  for (var i = 1u; i < most; i++) {
    var draft = newest;
    if (match_found != 0u && at + i <= end) {
      draft = text.tokens[at + i];
    } else if (match_found != 0u) {
      draft = text.rows[at + i - end];
    }
    if (draft >= VOCAB_SIZE) {
      if (!FILLS) {
        break;
      }
      draft = newest;
    }
    text.rows[i] = draft;
    state.rows = i + 1u;
  }
}
