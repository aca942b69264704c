// The positions of a step's rows, in a layer with a window whose blocks are of a pool of their own: as many_sequences,
// by the other table. Entries of blocks that were given back are not read. The kernel binds `state`. Consts besides
// those of step_tables: N_KV_HEADS, ALL_SINGLE.
//!import common/step_tables

fn row_position(row: u32) -> u32 { return select(kNowhere, position_of_row(row), row < state.rows); }

fn windows_table_at(slot: u32) -> u32 { return record_at(0u) + aligned_words(TABLE_SEQUENCES * 48u) + slot * TABLE_BLOCKS; }

fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 {
  let block = state.tables[windows_table_at(slot_of_row(row)) + position / BLOCK_LEN];
  return (block * N_KV_HEADS + kv_head) * BLOCK_LEN + position % BLOCK_LEN;
}

fn single_rows() -> u32 { return select(state.single_rows, state.rows, ALL_SINGLE); }
