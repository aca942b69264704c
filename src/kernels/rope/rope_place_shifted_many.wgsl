// Likewise of rows of many sequences, whose records have their shifts.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 {
  return position + state.tables[record_at(slot_of_row(row)) + 10u];
}
