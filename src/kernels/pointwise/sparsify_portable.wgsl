// x = max(x - (mean + DEVIATIONS * standard deviation), 0) of each row, in place. One workgroup makes one row (x of the
// grid), an invocation every WORKGROUP-th value. Shared: the partial sums (common/row_sum_portable, with its barriers).
// Barrier: all invocations have read the first sum's parts. Error: relative L2 below 1e-5.
//!import common/row_sum_portable
@group(0) @binding(0) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let base = group.x * STRIDE + COLUMN;
  var sum = 0.0;
  for (var i = t; i < N; i += WORKGROUP) { sum += x[base + i]; }
  let mean = row_sum(t, 0u, 1u, sum) / f32(N);
  workgroupBarrier();
  var squares = 0.0;
  for (var i = t; i < N; i += WORKGROUP) {
    let distance = x[base + i] - mean;
    squares += distance * distance;
  }
  let threshold = mean + DEVIATIONS * sqrt(row_sum(t, 0u, 1u, squares) / f32(N));
  for (var i = t; i < N; i += WORKGROUP) { x[base + i] = max(x[base + i] - threshold, 0.0); }
}
