// Applies a choice to the step state, the ring and the penalties: points 1 to 4 of step.h. One invocation calls
// end_step(). Bindings of the entry: state, ring, counts, recent. Consts: TOKEN_RING, PENALTY_RING, MAX_STOP_TOKENS,
// VOCAB_SIZE.
//!import step/step_move

fn is_stop_token(t: u32) -> bool {
  if (state.ignore_stop != 0u) {
    return false;
  }
  for (var i = 0u; i < min(state.stop_token_count, MAX_STOP_TOKENS); i++) {
    if (state.stop_tokens[i] == t) {
      return true;
    }
  }
  return false;
}

fn end_step(now: StepNow, t: u32) {
  move_on(now, t, is_stop_token(t)); // 1, 2, 4
  if (now.stop_reason != kRunning) {
    return;
  }
  let pos = now.pos + now.rows;
  let oldest = recent[pos % PENALTY_RING]; // 3
  if (oldest < VOCAB_SIZE) {
    let count = counts[oldest];
    counts[oldest] = select(count - 1u, 0u, count == 0u);
  }
  recent[pos % PENALTY_RING] = t;
  if (t < VOCAB_SIZE) {
    counts[t] += 1u;
  }
}
