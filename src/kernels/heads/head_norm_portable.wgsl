// RMSNorm of each head where it lies. One workgroup makes one head (x of the grid) of one row (y). Shared: the partial
// sums (common/row_sum_portable, with its barriers). Error: relative L2 below 1e-6.
//!import common/row_sum_portable
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let base = group.y * STRIDE + COLUMN + group.x * HEAD_DIM;
  var squares = 0.0;
  for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
    squares += x[base + d] * x[base + d];
  }
  let scale = inverseSqrt(row_sum(t, 0u, 1u, squares) / f32(HEAD_DIM) + EPS);
  for (var d = t; d < HEAD_DIM; d += WORKGROUP) {
    var value = x[base + d] * scale;
    if (HAS_WEIGHT) { value *= weight[d]; }
    x[base + d] = value;
  }
}
