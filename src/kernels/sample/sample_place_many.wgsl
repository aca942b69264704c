// Whose token a workgroup chooses, in plans of many sequences: the rows of the step's table `sampled`. Takes the place
// of sample_place, which explains Place. Fields of the records: step/step_records.
//!import common/philox
//!import common/step_tables
struct Place {
  row: u32,
  slot: u32,
}

fn chooses(row: u32) -> bool { return row < state.tables[sampled_state_at() + 1u]; }

fn place_of(row: u32) -> Place { return Place(row, state.tables[sampled_at(row)]); }

fn generated_of(place: Place) -> u32 { return state.tables[record_at(place.slot) + 3u]; }

fn random_of(place: Place, number: u32) -> u32 {
  let record = record_at(place.slot);
  let seed = vec2u(state.tables[record + 6u], state.tables[record + 7u]);
  return philox(vec4u(generated_of(place), number, 0u, 0u), seed);
}
