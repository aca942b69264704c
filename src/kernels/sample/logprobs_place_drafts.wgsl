// The step of the output ring that a choice belongs to, and its place there, in plans of many sequences that evaluate
// drafts. Takes the place of logprobs_place.
fn ring_place(place: Place) -> vec2u {
  return vec2u(state.ring_index + drafts_before(place), slot_of_row(place.row));
}
