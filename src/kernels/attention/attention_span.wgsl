// The first and the last key that a row of a prompt sees: its own position and the WINDOW - 1 before it, and AHEAD of
// this step after it. Twin: attention_span_rows. The kernel has position_of(). Constants that say nothing lead to
// constants, so that the compiler leaves the comparison out.
fn first_key_of(run: Run, row: u32) -> u32 {
  if (WINDOW == 0xFFFFFFFFu) { return 0u; }
  let position = position_of(run, row);
  return position - min(position, WINDOW - 1u);
}

fn last_key_of(run: Run, row: u32) -> u32 {
  if (AHEAD == 0u) { return position_of(run, row); }
  let last = position_of(run, run.last_row);
  return min(position_of(run, row) + AHEAD, last);
}
