// The rows that a tile of prefill attention is made of: all of this step. Twin: attention_many_runs.
//!import common/one_sequence

// Rows of one sequence at consecutive positions. last_row below first_row: none.
struct Run {
  first_row: u32,
  last_row: u32,
  position: u32, // of first_row
}

fn run_of(piece: u32) -> Run { return Run(0u, state.rows - 1u, state.pos); }
