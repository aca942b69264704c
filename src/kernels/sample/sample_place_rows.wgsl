// The place of the choice that a workgroup makes, in plans of one sequence that choose a token for each of several
// rows. It replaces sample_place, which explains Place, and sample_place_many. Each row has its own params, bias and
// counts.
//!import common/philox
//!import common/step_state
struct Place {
  row: u32,
  slot: u32,
}

fn chooses(row: u32) -> bool { return true; }

fn place_of(row: u32) -> Place { return Place(row, row); }

// The count for a row's choice, as if those of the rows before it had been generated.
fn generated_of(place: Place) -> u32 { return state.generated + place.row; }

fn random_of(place: Place, number: u32) -> u32 {
  return philox(vec4u(generated_of(place), number, 0u, 0u), vec2u(state.seed_low, state.seed_high));
}
