// The first of four values and the others with its magnitude, or the mean of all: see altup/altup.h. One workgroup
// makes one row (x of the grid), an invocation every WORKGROUP-th column. Shared: the partial sums
// (common/row_sum_portable, with its barriers). Barriers: all invocations have read the parts of the sum before. Error:
// relative L2 below 1e-6.
//!import common/row_sum_portable
struct Params {
  stream: u32, // numbers from a stream to the next, in y
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x0: array<f32>;
@group(0) @binding(2) var<storage, read> x1: array<f32>;
@group(0) @binding(3) var<storage, read> x2: array<f32>;
@group(0) @binding(4) var<storage, read> x3: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const kLeastSquare = 1e-5;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let base = group.x * N;
  var squares = vec4f();
  for (var i = t; i < N; i += WORKGROUP) {
    let values = vec4f(x0[base + i], x1[base + i], x2[base + i], x3[base + i]);
    squares += values * values;
  }
  var sums = vec4f();
  for (var j = 0u; j < 4u; j++) {
    sums[j] = row_sum(t, 0u, 1u, squares[j]) / f32(N);
    workgroupBarrier();
  }
  var scales = sqrt(vec4f(sums.x) / max(sums, vec4f(kLeastSquare)));
  scales.x = 1.0;
  for (var i = t; i < N; i += WORKGROUP) {
    let values = scales * vec4f(x0[base + i], x1[base + i], x2[base + i], x3[base + i]);
    if (IS_MEAN) {
      y[base + i] = (values.x + values.y + values.z + values.w) / 4.0;
    } else {
      for (var j = 0u; j < 4u; j++) { y[j * params.stream + base + i] = values[j]; }
    }
  }
}
