// The stop tokens of a row's sequence, in plans of many that evaluate drafts. Takes the place of sample_stops and
// sample_stops_many. Fields of the records: step/step_records.
fn stop_count_of(place: Place) -> u32 {
  let record = record_of(place);
  return select(min(state.tables[record + 8u], MAX_STOP_TOKENS), 0u, state.tables[record + 9u] != 0u);
}

fn stop_token_of(place: Place, i: u32) -> u32 { return state.tables[record_of(place) + 16u + i]; }
