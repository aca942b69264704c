// The place of a drafting step's row, in plans of one sequence. Its twin for many: draft_place_many. The kernel binds
// `state`.
//!import common/step_state
struct DraftPlace {
  slot: u32,  // of its sequence
  first: u32, // the first row of that sequence
  pos: u32,   // the position of that row
}

fn draft_place(row: u32) -> DraftPlace { return DraftPlace(0u, 0u, state.pos); }

// Whether the choice of this row is the last that counts, after the end of the step.
fn is_kept(row: u32) -> bool { return row == state.kept_row; }
