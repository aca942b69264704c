// The positions of a step's rows: consecutive positions of one sequence, whose cache is one block of CTX_LEN positions.
// Twins: one_sequence_ring, many_sequences. The kernel binds `state`.
//!import common/step_state

fn row_position(row: u32) -> u32 { return state.pos + row; }

// The place, counted in rows of a head, of a position's key or value in the cache of the sequence that `row` belongs
// to.
fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 { return kv_head * CTX_LEN + position; }

// Rows that are attended each on its own: all that the grid has.
fn single_rows() -> u32 { return 0xFFFFFFFFu; }
