// The begin of a drafting step with the next-token layer: its first token and the number of its rows. One invocation in
// all. Contract: draft.h.
//!import common/step_state
//!import step/draft_text
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> text: DraftText;

@compute @workgroup_size(1)
fn main() {
  text.rows[0] = token[0];
  let has_two = state.stop_reason == 0u && state.pos + 1u < state.ctx_len; // kRunning
  state.rows = select(1u, 2u, has_two);
}
