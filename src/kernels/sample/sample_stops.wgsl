// The stop tokens of a sequence, in plans of one. Its twin for many: sample_stops_many. Consts: MAX_STOP_TOKENS.
fn stop_count_of(place: Place) -> u32 {
  return select(min(state.stop_token_count, MAX_STOP_TOKENS), 0u, state.ignore_stop != 0u);
}

fn stop_token_of(place: Place, i: u32) -> u32 { return state.stop_tokens[i]; }
