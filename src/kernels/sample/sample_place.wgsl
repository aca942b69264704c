// Whose token a workgroup chooses, in plans of one sequence. Its twin for many: sample_place_many.
//!import common/philox
//!import common/step_state
struct Place {
  row: u32,  // of the logits and of all that lies between the dispatches
  slot: u32, // of the sequence: its params, bias and counts
}

fn chooses(row: u32) -> bool { return true; }

fn place_of(row: u32) -> Place { return Place(0u, 0u); }

fn generated_of(place: Place) -> u32 { return state.generated; }

// A random number of this step: 0 draws the token, 1 decides on XTC.
fn random_of(place: Place, number: u32) -> u32 {
  return philox(vec4u(state.generated, number, 0u, 0u), vec2u(state.seed_low, state.seed_high));
}
