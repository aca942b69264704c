// The first and the last key that a row of a prompt sees: its own position, the WINDOW - 1 before it, and AHEAD of this
// step behind it. Twin: attention_span_rows. The kernel has position_of().
fn first_key_of(run: Run, row: u32) -> u32 {
  let position = position_of(run, row);
  return position - min(position, WINDOW - 1u);
}

fn last_key_of(run: Run, row: u32) -> u32 {
  let last = position_of(run, run.last_row);
  return min(position_of(run, row) + AHEAD, last);
}
