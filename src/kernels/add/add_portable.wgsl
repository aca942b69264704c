// sum = x + y. One workgroup makes WORKGROUP consecutive values of one row (y of the grid), one invocation makes one
// value. Nothing is shared. Exact but for the rounding of each sum.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column < N) { sum[group.y * N + column] = x[group.y * N + column] + y[group.y * N + column]; }
}
