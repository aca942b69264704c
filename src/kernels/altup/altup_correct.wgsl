// y_j = x_j + (made - x_0) * (1 + c[j]): see altup/altup.h. One workgroup makes WORKGROUP consecutive columns of one
// row (y of the grid), one invocation a column of all streams. Nothing is shared. Error: relative L2 below 1e-6.
//!import altup/altup_router
struct Params {
  stream: u32, // numbers from a stream to the next
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> made: array<f32>;
@group(0) @binding(3) var<storage, read> router: array<f32>;
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let m = modalities(group.y);
  let at = group.y * N + column;
  let change = made[at] - x[at];
  for (var j = 0u; j < kStreams; j++) {
    y[j * params.stream + at] = x[j * params.stream + at] + change * (1.0 + coefficient(j, m));
  }
}
