// The adapter of a row in plans of one sequence. It is the sequence's adapter, from a position on. Twins: rows_many,
// rows_sampled. The kernel binds `state` and `adapters`. Const: LAST: the row is the step's last.
//!import common/step_state

fn adapter_of(row: u32) -> u32 {
  let position = state.pos + select(row, state.rows - 1u, LAST);
  return select(0u, adapters[0].x, position >= adapters[0].y);
}

fn row_count() -> u32 { return select(state.rows, 1u, LAST); }
