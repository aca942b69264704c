// As attention_decode_range, in whose place it stands, for layers that have windows of their own: `row` is the layer
// (persistent_sliding).
//!import common/step_state

struct Keys {
  begin: u32,
  end: u32,
}

// The functions of common/one_sequence, for the one row of a decode step.
fn row_position(row: u32) -> u32 { return state.pos; }
fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 { return kv_head * CTX_LEN + position; }

fn keys_of_row(row: u32) -> Keys {
  let window = window_of(row);
  let end = min(state.pos + 1u, CTX_LEN);
  return Keys(end - min(window, end), end);
}

// At least KEYS_PER_SPLIT, so that a short context is one split and the others exit at once.
fn keys_per_split(keys: Keys) -> u32 {
  let share = (keys.end - keys.begin + SPLITS - 1u) / SPLITS;
  return max((share + 7u) / 8u * 8u, KEYS_PER_SPLIT);
}
