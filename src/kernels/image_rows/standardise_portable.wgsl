// x = (x - mean) * scale of each column. One workgroup makes WORKGROUP consecutive values of one row (y of the grid),
// one invocation makes one. Nothing is shared. Exact but for the rounding of both.
@group(0) @binding(0) var<storage, read> mean: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let at = group.y * N + column;
  x[at] = (x[at] - mean[column]) * scale[column];
}
