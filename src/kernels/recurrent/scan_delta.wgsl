// The gated delta rule for recurrent/scan: keys and queries of length 1, queries times KEY_DIM^-0.5; gates a and b of
// each head. Twin: scan_ssd. Vectors: A (negative) of each head, then dt_bias.
//!import common/activate
//!import recurrent/softplus
const kLengthEps = 1e-6; // inside the root

// a and b of a head.
fn gates_of(row: u32, head: u32) -> vec2f {
  return vec2f(gates[row * GATES_STRIDE + GATE_COLUMN + head], gates[row * GATES_STRIDE + RATE_COLUMN + head]);
}

// Decay and rate.
fn rates_of(gate: vec2f, head: u32) -> vec2f {
  return vec2f(exp(vectors[head] * softplus(gate.x + vectors[HEADS + head])), sigmoid(gate.y));
}

// The scales of keys and of queries.
fn scales_of(key_squares: f32, query_squares: f32) -> vec2f {
  return vec2f(inverseSqrt(key_squares + kLengthEps),
               inverseSqrt(query_squares + kLengthEps) * inverseSqrt(f32(KEY_DIM)));
}

// The addition to the state along the key; `known` is the state's present answer to the key.
fn addition(value: f32, known: f32, rate: f32) -> f32 { return (value - known) * rate; }

fn direct(head: u32, value: f32) -> f32 { return 0.0; }
