// The step state moving on after a chosen token: points 1, 2 and 4 of step.h. One invocation calls move_on().
// Bindings of the entry: state, ring. Consts: TOKEN_RING.
//!import common/step_state

const kNoToken = 0xFFFFFFFFu;
const kRunning = 0u;
const kStopToken = 1u;
const kTokenLimit = 2u;
const kContextFull = 3u;

// The fields that it decides by, loaded at once, so that no later step waits for them.
struct StepNow {
  pos: u32,
  rows: u32,
  ctx_len: u32,
  generated: u32,
  max_generated: u32,
  stop_reason: u32,
  ring_index: u32,
}

fn load_now() -> StepNow {
  return StepNow(state.pos, state.rows, state.ctx_len, state.generated, state.max_generated, state.stop_reason,
                 state.ring_index);
}

// is_stop: the token is one of the stop tokens, and these are not ignored.
fn move_on(now: StepNow, token: u32, is_stop: bool) {
  let entry = now.ring_index % TOKEN_RING;
  state.ring_index = now.ring_index + 1u;
  if (now.stop_reason != kRunning) {
    ring[entry] = kNoToken;
    return;
  }
  ring[entry] = token; // 1
  let pos = now.pos + now.rows; // 2
  let generated = now.generated + 1u;
  state.pos = pos;
  state.generated = generated;
  state.rows = 1u;
  state.kept_row = 0u;
  if (is_stop) { // 4
    state.stop_reason = kStopToken;
  } else if (generated >= now.max_generated) {
    state.stop_reason = kTokenLimit;
  } else if (pos >= now.ctx_len) {
    state.stop_reason = kContextFull;
  }
}
