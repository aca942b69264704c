// The runs of a step: rows of one sequence at consecutive positions. In plans of one sequence all rows are one run.
// Twins: runs_many, runs_draft. The kernel binds `state`.
//!import common/step_state
struct Run {
  first: u32, // row
  rows: u32,
  from_slot: u32, // whose state is read
  slot: u32, // whose state is written
  position: u32, // of the first row; 0: the state before it is zero, whatever lies there
  advances: bool, // false: its generation has stopped, and the state does not change
}

fn run_at(index: u32) -> Run { return Run(0u, state.rows, 0u, 0u, state.pos, state.stop_reason == 0u); }

// The run that a row is of.
fn run_of_row(row: u32) -> Run { return run_at(0u); }
