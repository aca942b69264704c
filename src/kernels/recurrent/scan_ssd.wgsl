// Mamba 2 (state space duality) for recurrent/scan: B is the key, C the query, dt the rate, and D x goes past the state.
// Twin: scan_delta. Vectors: A (negative) of each head, then dt_bias, then D.
//!import recurrent/softplus
struct Step {
  decay: f32,
  rate: f32,
  key_scale: f32,
  query_scale: f32,
}

fn step_of(row: u32, head: u32, key_squares: f32, query_squares: f32) -> Step {
  let dt = softplus(gates[row * GATES_STRIDE + GATE_COLUMN + head] + vectors[HEADS + head]);
  return Step(exp(vectors[head] * dt), dt, 1.0, 1.0);
}

fn addition(value: f32, known: f32, rate: f32) -> f32 { return value * rate; }

fn direct(head: u32, value: f32) -> f32 { return vectors[2u * HEADS + head] * value; }
