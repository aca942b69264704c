// The run of a step of a model that drafts: all rows are of one sequence. Its state is in the slot of the last row that
// counted. The new state goes to slot 0, or, if there is one after each row, to the slots from there on. Twin:
// runs_one, which explains Run.
//!import common/step_state
struct Run {
  first: u32,
  rows: u32,
  from_slot: u32,
  slot: u32,
  position: u32,
  advances: bool,
}

fn run_at(index: u32) -> Run {
  return Run(0u, state.rows, state.kept_row, 0u, state.pos, state.stop_reason == 0u);
}

fn run_of_row(row: u32) -> Run { return run_at(0u); }
