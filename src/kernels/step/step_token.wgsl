// The end of a step that chose a token. One invocation in all: a handful of dependent words. Contract: step.h, whose
// numbers the comments give.
//!import step/step_move
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> recent: array<u32>;

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

@compute @workgroup_size(1)
fn main() {
  let now = load_now();
  let t = token[0];
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
