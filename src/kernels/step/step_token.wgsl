// The end of a step that chose a token. One invocation in all: a handful of dependent words. Contract: step.h, whose
// numbers the comments give.
//!import common/step_state
@group(0) @binding(0) var<storage, read_write> state: StepState;
@group(0) @binding(1) var<storage, read> token: array<u32>;
@group(0) @binding(2) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> ring: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<u32>;
@group(0) @binding(5) var<storage, read_write> recent: array<u32>;

const kNoToken = 0xFFFFFFFFu;
const kRunning = 0u;
const kStopToken = 1u;
const kTokenLimit = 2u;
const kContextFull = 3u;

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
  let entry = state.ring_index % TOKEN_RING;
  state.ring_index += 1u;
  if (state.stop_reason != kRunning) {
    ring[entry] = kNoToken;
    return;
  }
  let t = token[0];
  ring[entry] = t; // 1
  tokens[0] = t;
  let pos = state.pos + state.rows; // 2
  let generated = state.generated + 1u;
  state.pos = pos;
  state.generated = generated;
  state.rows = 1u;

  let oldest = recent[pos % PENALTY_RING]; // 3
  if (oldest < VOCAB_SIZE) {
    let count = counts[oldest];
    counts[oldest] = select(count - 1u, 0u, count == 0u);
  }
  recent[pos % PENALTY_RING] = t;
  if (t < VOCAB_SIZE) {
    counts[t] += 1u;
  }

  if (is_stop_token(t)) { // 4
    state.stop_reason = kStopToken;
  } else if (generated >= state.max_generated) {
    state.stop_reason = kTokenLimit;
  } else if (pos >= state.ctx_len) {
    state.stop_reason = kContextFull;
  }
}
