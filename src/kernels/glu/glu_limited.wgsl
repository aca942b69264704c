// y = g * sigmoid(1.702 g) * (u + 1), where g = min(gate, LIMIT) and u = up within +-LIMIT (OpenAI 2025). Twin:
// glu_portable. One workgroup makes WORKGROUP * 4 consecutive values of one row (y of the grid), one invocation makes
// four. Shared: the q8 blocks (common/q8_store, with its barriers). Error: relative L2 < 1e-6.
//!import common/q8_store
//!import common/f16_store
@group(0) @binding(0) var<storage, read> gate_up: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(3) var<storage, read_write> y_f16: array<vec2<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let first = (group.x * WORKGROUP + t) * 4u;
  var values = vec4f();
  for (var j = 0u; j < 4u; j++) {
    let i = first + j;
    if (i < N) {
      let gate = min(gate_up[row * 2u * N + i], LIMIT);
      let up = clamp(gate_up[row * 2u * N + N + i], -LIMIT, LIMIT);
      values[j] = gate / (1.0 + exp(min(-1.702 * gate, 87.0))) * (up + 1.0);
      if (HAS_F32) { y[row * N + i] = values[j]; }
    }
  }
  if (HAS_F16 && first < N) { store_f16_quad(row, first, values); }
  if (HAS_Q8) {
    store_q8(t, (row * N + first) / 4u, values, first < N);
  }
}
