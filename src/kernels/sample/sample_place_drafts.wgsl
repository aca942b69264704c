// The place of the choice that a workgroup makes, in plans of many sequences that evaluate drafts: each row chooses a
// token. It replaces sample_place, which explains Place, and sample_place_many. Each row has its own params, bias and
// counts. Fields of the records: step/step_records.
//!import common/philox
//!import common/step_tables
struct Place {
  row: u32,
  slot: u32,
}

fn chooses(row: u32) -> bool { return row < state.tables[sampled_state_at() + 1u]; }

fn place_of(row: u32) -> Place { return Place(row, row); }

fn record_of(place: Place) -> u32 { return record_at(slot_of_row(place.row)); }

// The rows of its sequence before this one.
fn drafts_before(place: Place) -> u32 { return position_of_row(place.row) - state.tables[record_of(place)]; }

// The count for a row's choice, as if those of the rows before it had been generated.
fn generated_of(place: Place) -> u32 { return state.tables[record_of(place) + 3u] + drafts_before(place); }

fn random_of(place: Place, number: u32) -> u32 {
  let record = record_of(place);
  let seed = vec2u(state.tables[record + 6u], state.tables[record + 7u]);
  return philox(vec4u(generated_of(place), number, 0u, 0u), seed);
}
