// Where the rows of a step stand, in a layer that keeps a ring of RING_LEN positions: a key or value lies where the one of
// RING_LEN positions before it lay. Twin of one_sequence. The kernel binds `state`.
// Keys that a kernel masks, of a tile that begins before its window, are then later ones: finite, and masked all the same.
//!import common/step_state

fn row_position(row: u32) -> u32 { return state.pos + row; }
fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 { return kv_head * RING_LEN + position % RING_LEN; }

// Rows that are attended each on its own: all that the grid has.
fn single_rows() -> u32 { return 0xFFFFFFFFu; }
