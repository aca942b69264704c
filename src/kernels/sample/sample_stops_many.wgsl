// The stop tokens of a sequence, in plans of many. Takes the place of sample_stops. Fields of the records:
// step/step_records.
fn stop_count_of(place: Place) -> u32 {
  let record = record_at(place.slot);
  return select(min(state.tables[record + 8u], MAX_STOP_TOKENS), 0u, state.tables[record + 9u] != 0u);
}

fn stop_token_of(place: Place, i: u32) -> u32 { return state.tables[record_at(place.slot) + 16u + i]; }
