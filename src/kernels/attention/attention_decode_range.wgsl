// The keys that a row of q sees, and the way they are dealt to the splits. Both depend on the position, so they are
// computed on the GPU; the number of splits is fixed in the plan. The kernel binds `state`.
//!import common/one_sequence

struct Keys {
  begin: u32,
  end: u32,
}

// `row`: of q in this step; 0 in decode.
fn keys_of_row(row: u32) -> Keys {
  let end = min(row_position(row) + 1u, CTX_LEN);  // of a row that is nowhere: 0
  return Keys(select(0u, end - min(WINDOW, end), end > WINDOW), end);
}

// Whole multiples of KEYS_PER_SPLIT, so that a short context is one split and the others exit at once.
fn keys_per_split(keys: Keys) -> u32 {
  let share = (keys.end - keys.begin + SPLITS - 1u) / SPLITS;
  return max((share + KEYS_PER_SPLIT - 1u) / KEYS_PER_SPLIT, 1u) * KEYS_PER_SPLIT;
}
