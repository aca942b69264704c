// y_j = x_j + sum over k of c[4 j + k] * x_k: see altup/altup.h. One workgroup makes WORKGROUP consecutive columns of
// one row (y of the grid), one invocation a column of all streams. Nothing is shared. Error: relative L2 below 1e-6.
//!import altup/altup_router
struct Params {
  stream: u32, // numbers from a stream to the next
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> added: array<f32>;
@group(0) @binding(3) var<storage, read> router: array<f32>;
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let m = modalities(group.y);
  let at = group.y * N + column;
  var values = vec4f();
  for (var k = 0u; k < kStreams; k++) {
    values[k] = x[k * params.stream + at];
    if (HAS_ADDED && k > 0u) { values[k] += added[at]; }
  }
  for (var j = 0u; j < kStreams; j++) {
    var sum = 0.0;
    for (var k = 0u; k < kStreams; k++) { sum += coefficient(j * kStreams + k, m) * values[k]; }
    y[j * params.stream + at] = values[j] + sum;
  }
}
