// The positions of a step's rows, in a layer that keeps a ring of RING_LEN positions: a key or value takes the place of
// the one RING_LEN positions before it. Twin of one_sequence. The kernel binds `state`.
// If a tile begins before its window, the keys that a kernel masks are then later ones: finite, and masked all the
// same.
//!import common/step_state

fn row_position(row: u32) -> u32 { return state.pos + row; }
fn cache_row(row: u32, kv_head: u32, position: u32) -> u32 { return kv_head * RING_LEN + position % RING_LEN; }

// Rows that are attended each on its own: all that the grid has.
fn single_rows() -> u32 { return 0xFFFFFFFFu; }
