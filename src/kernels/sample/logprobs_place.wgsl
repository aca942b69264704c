// The step of the output ring that a choice belongs to, and its place there. Its twin for plans of many sequences that
// evaluate drafts: logprobs_place_drafts. Consts: ROWS_OF_ONE (rows that choose are of one sequence).
fn ring_place(place: Place) -> vec2u {
  return vec2u(state.ring_index + select(0u, place.row, ROWS_OF_ONE), select(place.slot, 0u, ROWS_OF_ONE));
}
