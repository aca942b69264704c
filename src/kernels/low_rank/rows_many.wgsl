// The adapter of a row in plans of many sequences. It is the adapter of the row's slot, from a position on. Twins:
// rows_one, rows_sampled. The kernel binds `state` and `adapters`.
//!import common/step_tables

fn adapter_of(row: u32) -> u32 {
  let own = adapters[slot_of_row(row)];
  return select(0u, own.x, position_of_row(row) >= own.y);
}

fn row_count() -> u32 { return state.rows; }
