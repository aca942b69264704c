// Each row of a step is a run of its own: of what is attended row by row. Siblings: attention_one_run,
// attention_many_runs.
//!import common/one_sequence

// Rows of one sequence at consecutive positions. last_row below first_row: none.
struct Run {
  first_row: u32,
  last_row: u32,
  position: u32, // of first_row
}

fn run_of(row: u32) -> Run {
  if (row >= single_rows()) { return Run(1u, 0u, 0u); }
  return Run(row, row, row_position(row));
}
