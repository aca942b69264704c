// y = activate(gate) * up of a product of gates and ups, to both of which a row's adapter adds. One workgroup makes
// WORKGROUP * 4 consecutive values of one row (y of the grid), and one invocation makes four values. Shared: the q8
// blocks (common/q8_store, with its barriers). Error: relative L2 < 1e-6. Consts: N, and the consts of
// low_rank/adapted.
//!import common/activate
//!import common/q8_store
//!import common/f16_store
//!import low_rank/rows_one
//!import low_rank/low_of_product
//!import low_rank/adapted
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> adapters: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> low: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> gate_up: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(7) var<storage, read_write> y_f16: array<vec2<u32>>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let adapter = adapter_of(row);
  let first = (group.x * WORKGROUP + t) * 4u;
  var values = vec4f();
  for (var j = 0u; j < 4u; j++) {
    let i = first + j;
    if (i < N) {
      let gate = adapted(row, adapter, i, gate_up[row * 2u * N + i]);
      let up = adapted(row, adapter, N + i, gate_up[row * 2u * N + N + i]);
      values[j] = activate(gate) * up;
      if (HAS_F32) { y[row * N + i] = values[j]; }
    }
  }
  if (HAS_F16 && first < N) { store_f16_quad(row, first, values); }
  if (HAS_Q8) {
    store_q8(t, (row * N + first) / 4u, values, first < N);
  }
}
