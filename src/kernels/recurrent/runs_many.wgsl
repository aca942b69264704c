// The runs of a step of many sequences: each decoding slot's row, then each piece's rows. Twin: runs_one, which
// explains Run.
//!import common/step_tables
struct Run {
  first: u32,
  rows: u32, // 0: there is no such run
  from_slot: u32,
  slot: u32,
  position: u32,
  advances: bool,
}

fn single_run(row: u32) -> Run {
  let position = position_of_row(row);
  let slot = slot_of_row(row);
  return Run(row, 1u, slot, slot, position, position != kNowhere);
}

fn piece_run(piece: u32, first: u32) -> Run {
  let at = piece_at(piece);
  let slot = state.tables[at];
  return Run(first, state.tables[at + 2u], slot, slot, state.tables[at + 1u], true);
}

fn run_at(index: u32) -> Run {
  if (index < state.single_rows) {
    return single_run(index);
  }
  let piece = index - state.single_rows;
  if (piece >= piece_count()) {
    return Run(0u, 0u, 0u, 0u, 0u, false);
  }
  var first = state.single_rows;
  for (var i = 0u; i < piece; i++) {
    first += state.tables[piece_at(i) + 2u];
  }
  return piece_run(piece, first);
}

// The run that a row is of. Past the step's last row: one that advances nothing.
fn run_of_row(row: u32) -> Run {
  if (row >= state.rows) {
    return Run(row, 1u, 0u, 0u, 0u, false);
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
  return piece_run(piece, first);
}
