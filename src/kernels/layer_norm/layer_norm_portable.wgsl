// LayerNorm of whole rows. One workgroup makes one row (x of the grid), an invocation four consecutive values, then the
// next four WORKGROUP * 4 further on, which stay in registers. Shared: the partial sums (common/row_sum_portable) of
// the mean, then of the squared distances from it, and the q8 blocks (common/q8_store). Error: relative L2 below 1e-6.
//!import common/row_sum_portable
//!import common/q8_store
//!import common/f16_store
@group(0) @binding(0) var<storage, read> x: array<f32>; // [rows, N]
@group(0) @binding(1) var<storage, read> weights: array<f32>; // [N], then the bias
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> y_q8: array<u32>;
@group(0) @binding(4) var<storage, read_write> y_f16: array<vec2<u32>>;

const kStride = WORKGROUP * 4u;
const kEach = (N + kStride - 1u) / kStride;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) id: vec3u, @builtin(local_invocation_index) t: u32) {
  let row = id.x;
  let at = row * N;
  var values: array<f32, 4u * kEach>;
  var sum = 0.0;
  for (var e = 0u; e < kEach; e++) {
    for (var j = 0u; j < 4u; j++) {
      let i = e * kStride + t * 4u + j;
      if (i < N) { values[4u * e + j] = x[at + i]; }
      sum += values[4u * e + j];
    }
  }
  let mean = row_sum(t, 0u, 1u, sum) / f32(N);
  workgroupBarrier(); // row_sum's memory
  var squares = 0.0;
  for (var e = 0u; e < kEach; e++) {
    for (var j = 0u; j < 4u; j++) {
      let distance = select(0.0, values[4u * e + j] - mean, e * kStride + t * 4u + j < N);
      values[4u * e + j] = distance;
      squares += distance * distance;
    }
  }
  let scale = inverseSqrt(row_sum(t, 0u, 1u, squares) / f32(N) + EPS);
  for (var e = 0u; e < kEach; e++) {
    let first = e * kStride + t * 4u;
    var made = vec4f();
    for (var j = 0u; j < 4u; j++) {
      let i = first + j;
      if (i < N) {
        made[j] = values[4u * e + j] * scale * weights[i];
        if (HAS_BIAS) { made[j] += weights[N + i]; }
        if (HAS_F32) { y[at + i] = made[j]; }
      }
    }
    if (HAS_F16 && first < N) { store_f16_quad(row, first, made); }
    if (HAS_Q8) { store_q8(t, (at + first) / 4u, made, first < N); }
  }
}
