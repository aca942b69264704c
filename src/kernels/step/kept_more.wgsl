// The past that the samplers see after a drafting step. One workgroup a row. Contract: draft_past.h.
// Consts: WORKGROUP, WORDS (of a MoreState).
//!import common/step_state
//!import step/draft_place
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> rows: array<u32>;
@group(0) @binding(2) var<storage, read_write> more: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.x;
  if (!is_kept(row)) {
    return;
  }
  let to = draft_place(row).slot * WORDS;
  for (var i = t; i < WORDS; i += WORKGROUP) {
    more[to + i] = rows[row * WORDS + i];
  }
}
