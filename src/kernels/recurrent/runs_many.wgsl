// The runs of a step of many sequences: each decoding slot's row, then each piece's rows. Twin: runs_one.
//!import common/step_tables
struct Run {
  first: u32,
  rows: u32, // 0: there is no such run
  slot: u32,
  position: u32,
  advances: bool,
}

fn single_run(row: u32) -> Run {
  let position = position_of_row(row);
  return Run(row, 1u, slot_of_row(row), position, position != kNowhere);
}

fn run_at(index: u32) -> Run {
  if (index < state.single_rows) {
    return single_run(index);
  }
  let piece = index - state.single_rows;
  if (piece >= piece_count()) {
    return Run(0u, 0u, 0u, 0u, false);
  }
  var first = state.single_rows;
  for (var i = 0u; i < piece; i++) {
    first += state.tables[piece_at(i) + 2u];
  }
  let at = piece_at(piece);
  return Run(first, state.tables[at + 2u], state.tables[at], state.tables[at + 1u], true);
}

// The run that a row is of. Past the step's last row: one that advances nothing.
fn run_of_row(row: u32) -> Run {
  if (row >= state.rows) {
    return Run(row, 1u, 0u, 0u, false);
  }
  if (row < state.single_rows) {
    return single_run(row);
  }
  var first = state.single_rows;
  var piece = 0u;
  while (piece + 1u < piece_count() && row >= first + state.tables[piece_at(piece) + 2u]) {
    first += state.tables[piece_at(piece) + 2u];
    piece++;
  }
  let at = piece_at(piece);
  return Run(first, state.tables[at + 2u], state.tables[at], state.tables[at + 1u], true);
}
