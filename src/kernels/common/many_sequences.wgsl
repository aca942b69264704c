// The positions of a step's rows: a table says each row's slot and position, and a table of each slot says in which
// block of the pool its positions lie. A block holds BLOCK_LEN positions of every kv head. Twins: one_sequence,
// many_sequences_window.
// The kernel binds `state`. Consts besides those of step_tables: N_KV_HEADS, ALL_SINGLE.
//!import common/step_tables

// kNowhere for a row whose sequence has stopped, and past the step's last row.
fn row_position(row: u32) -> u32 { return select(kNowhere, position_of_row(row), row < state.rows); }

fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 {
  let block = state.tables[block_table_at(slot_of_row(row)) + position / BLOCK_LEN];
  return (block * N_KV_HEADS + kv_head) * BLOCK_LEN + position % BLOCK_LEN;
}

// Rows that are attended each on its own: those of decoding slots; with ALL_SINGLE also the rows after them, of pieces.
fn single_rows() -> u32 { return select(state.single_rows, state.rows, ALL_SINGLE); }
