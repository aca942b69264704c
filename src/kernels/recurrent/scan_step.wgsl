// The numbers of one row and head for recurrent/scan and recurrent/delta_step.
//!import recurrent/scan_delta
struct Step {
  decay: f32, // of the state
  rate: f32, // of what joins it
  key_scale: f32,
  query_scale: f32,
}

fn step_of(row: u32, head: u32, key_squares: f32, query_squares: f32) -> Step {
  let rates = rates_of(gates_of(row, head), head);
  let scales = scales_of(key_squares, query_squares);
  return Step(rates.x, rates.y, scales.x, scales.y);
}
