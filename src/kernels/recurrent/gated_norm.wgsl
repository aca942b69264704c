// RMSNorm of groups of a row, times silu of a gate, before the norm (GATE_FIRST) or after it. One workgroup makes one
// group (x of the grid) of one row (y), an invocation four consecutive values, then the next four WORKGROUP * 4 further
// on. Shared: the partial sums (common/row_sum_portable), the q8 blocks (common/q8_store). Error: relative L2 below
// 1e-6.
//!import common/activate
//!import common/row_sum_portable
//!import common/q8_store
//!import common/f16_store
@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, GROUPS * GROUP]
@group(0) @binding(1) var<storage, read> gates: array<f32>; // rows of GATES_STRIDE
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(5) var<storage, read_write> y_f16: array<vec2<u32>>;

const kStride = WORKGROUP * 4u;

fn gate_at(row: u32, column: u32) -> f32 {
  let z = gates[row * GATES_STRIDE + GATE_COLUMN + column];
  return z * sigmoid(z);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = id.y;
  let column = id.x * GROUP;
  let at = row * GROUPS * GROUP + column;
  var squares = 0.0;
  for (var base = t * 4u; base < GROUP; base += kStride) {
    for (var i = base; i < min(base + 4u, GROUP); i++) {
      var value = x[at + i];
      if (GATE_FIRST) {
        value *= gate_at(row, column + i);
      }
      squares += value * value;
    }
  }
  let scale = inverseSqrt(row_sum(t, 0u, 1u, squares) / f32(GROUP) + EPS);
  for (var base = 0u; base < GROUP; base += kStride) {
    let first = base + t * 4u;
    var values = vec4f();
    for (var j = 0u; j < 4u; j++) {
      let i = first + j;
      if (i < GROUP) {
        values[j] = x[at + i] * gate_at(row, column + i) * scale * weight[select(column + i, i, SHARES_WEIGHT)];
        if (HAS_F32) { y[at + i] = values[j]; }
      }
    }
    if (HAS_F16 && first < GROUP) { store_f16_quad(row, column + first, values); }
    if (HAS_Q8) {
      store_q8(t, (at + first) / 4u, values, first < GROUP);
    }
  }
}
