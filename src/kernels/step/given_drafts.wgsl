// The begin of a drafting step whose drafts the host has written. One invocation in all. Contract: draft.h.
// Consts: ROWS.
//!import common/step_state
//!import step/draft_text
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;

@compute @workgroup_size(1)
fn main() {
  let places = state.ctx_len - min(state.pos, state.ctx_len);
  let rows = max(min(min(1u + text.given, ROWS), places), 1u);
  state.rows = select(1u, rows, state.stop_reason == 0u); // kRunning
}
