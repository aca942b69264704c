// y = x, but at least limits[FIRST] and at most limits[FIRST + 1]. One workgroup makes WORKGROUP consecutive values of
// one row (y of the grid), one invocation makes one. Nothing is shared. Exact.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> limits: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  if (column >= N) { return; }
  let at = group.y * N + column;
  y[at] = min(max(x[at], limits[FIRST]), limits[FIRST + 1u]);
}
