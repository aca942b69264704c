// The past that the samplers of each row of a drafting step see. One workgroup a row. Contract: draft_past.h.
// Consts: WORKGROUP, WORDS (of a MoreState), HISTORY.
//!import common/step_state
//!import step/draft_place
//!import step/draft_text
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;
@group(0) @binding(2) var<storage, read> more: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

const kCount = 1u;
const kHistory = 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.x;
  let place = draft_place(row);
  let drafts = row - place.first;
  let past = place.slot * WORDS;
  let count = more[past + kCount];
  for (var i = t; i < WORDS; i += WORKGROUP) {
    var value = more[past + i];
    if (i == kCount) {
      value = count + drafts;
    }
    if (i >= kHistory) {
      let after = (i - kHistory + HISTORY - count % HISTORY) % HISTORY; // a draft's place counts from the newest token
      if (after < drafts) {
        value = text.rows[place.first + after + 1u];
      }
    }
    out[row * WORDS + i] = value;
  }
}
