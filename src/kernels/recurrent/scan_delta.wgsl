// The gated delta rule for recurrent/scan: keys and queries of length 1, queries times KEY_DIM^-0.5; gates a and b of each
// head. Twin: scan_ssd. Vectors: A (negative) of each head, then dt_bias.
//!import common/activate
//!import recurrent/softplus
const kLengthEps = 1e-6; // inside the root

struct Step {
  decay: f32, // of the state
  rate: f32, // of what joins it
  key_scale: f32,
  query_scale: f32,
}

fn step_of(row: u32, head: u32, key_squares: f32, query_squares: f32) -> Step {
  let a = gates[row * GATES_STRIDE + GATE_COLUMN + head];
  let b = gates[row * GATES_STRIDE + RATE_COLUMN + head];
  return Step(exp(vectors[head] * softplus(a + vectors[HEADS + head])), sigmoid(b),
              inverseSqrt(key_squares + kLengthEps),
              inverseSqrt(query_squares + kLengthEps) * inverseSqrt(f32(KEY_DIM)));
}

// What joins the state along the key: `known` is what the state gives for the key already.
fn addition(value: f32, known: f32, rate: f32) -> f32 { return (value - known) * rate; }

fn direct(head: u32, value: f32) -> f32 { return 0.0; }
