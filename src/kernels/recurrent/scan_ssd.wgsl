// Mamba 2 (state space duality) for recurrent/scan: B is the key, C the query, dt the rate, and D x goes past the
// state. Twin: scan_delta. Vectors: A (negative) of each head, then dt_bias, then D.
//!import recurrent/softplus
// dt of a head.
fn gates_of(row: u32, head: u32) -> vec2f {
  return vec2f(gates[row * GATES_STRIDE + GATE_COLUMN + head], 0.0);
}

fn rates_of(gate: vec2f, head: u32) -> vec2f {
  let dt = softplus(gate.x + vectors[HEADS + head]);
  return vec2f(exp(vectors[head] * dt), dt);
}

fn scales_of(key_squares: f32, query_squares: f32) -> vec2f { return vec2f(1.0, 1.0); }

fn addition(value: f32, known: f32, rate: f32) -> f32 { return value * rate; }

fn direct(head: u32, value: f32) -> f32 { return vectors[2u * HEADS + head] * value; }
