// The rows that a tile of prefill attention is made of: a piece of this step, after the rows of decoding slots. Twin:
// attention_one_run.
//!import common/many_sequences

// Rows of one sequence at consecutive positions. last_row below first_row: none.
struct Run {
  first_row: u32,
  last_row: u32,
  position: u32, // of first_row
}

fn run_of(piece: u32) -> Run {
  if (piece >= piece_count()) { return Run(1u, 0u, 0u); }
  var first = state.single_rows;
  for (var i = 0u; i < piece; i++) { first += state.tables[piece_at(i) + 2u]; }
  return Run(first, first + state.tables[piece_at(piece) + 2u] - 1u, state.tables[piece_at(piece) + 1u]);
}
