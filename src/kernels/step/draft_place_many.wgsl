// The place of a drafting step's row, in plans of many sequences. Takes the place of draft_place, which explains it.
// Fields of the records: step/step_records.
//!import common/step_tables
struct DraftPlace {
  slot: u32,
  first: u32,
  pos: u32,
}

fn draft_place(row: u32) -> DraftPlace {
  let slot = slot_of_row(row);
  var first = row;
  while (first > 0u && slot_of_row(first - 1u) == slot) {
    first -= 1u;
  }
  return DraftPlace(slot, first, position_of_row(first));
}

fn is_kept(row: u32) -> bool {
  return row < state.rows && state.tables[record_at(slot_of_row(row)) + 10u] == row;
}
