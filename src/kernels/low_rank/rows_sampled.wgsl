// The adapters of the rows that choose a token, in plans of many sequences. Twins: rows_one, rows_many. The kernel
// binds `state` and `adapters`.
//!import common/step_tables

fn adapter_of(row: u32) -> u32 {
  let own = adapters[state.tables[sampled_at(row)]];
  return select(0u, own.x, position_of_row(state.tables[sampled_at(row) + 1u]) >= own.y);
}

fn row_count() -> u32 { return state.tables[sampled_state_at() + 1u]; }
