// The past that the samplers see after a drafting step. One workgroup in all. Contract: draft_past.h.
// Consts: WORKGROUP, WORDS (of a MoreState).
//!import common/step_state
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> rows: array<u32>;
@group(0) @binding(2) var<storage, read_write> more: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  for (var i = t; i < WORDS; i += WORKGROUP) {
    more[i] = rows[state.kept_row * WORDS + i];
  }
}
