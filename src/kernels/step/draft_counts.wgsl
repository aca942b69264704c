// The counts that each row of a drafting step sees. An invocation makes one count. Nothing is shared. Contract:
// draft_past.h.
// Consts: WORKGROUP, VOCAB_SIZE, PENALTY_RING.
//!import common/step_state
//!import step/draft_place
//!import step/draft_text
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read_write> text: DraftText;
@group(0) @binding(2) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<storage, read> recent: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let token = id.x;
  let row = id.y;
  if (token >= VOCAB_SIZE || row >= state.rows) {
    return;
  }
  let place = draft_place(row);
  let drafts = row - place.first;
  var count = counts[place.slot * VOCAB_SIZE + token];
  for (var i = 1u; i <= drafts; i++) {
    if (recent[place.slot * PENALTY_RING + (place.pos + i) % PENALTY_RING] == token && count > 0u) {
      count -= 1u;
    }
    if (text.rows[place.first + i] == token) {
      count += 1u;
    }
  }
  out[row * VOCAB_SIZE + token] = count;
}
