// The same for rows of many sequences: `table` has the shift of each slot after the pairs' steps.
fn place_of_pair(row: u32, position: u32, pair: u32) -> u32 {
  return position + table[ROTARY_DIM / 2u + slot_of_row(row)].x;
}
