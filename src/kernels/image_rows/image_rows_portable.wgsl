// Rows of a prompt whose place is an image's: its values instead of x, or added to x. One workgroup makes WORKGROUP
// consecutive values of one row (y of the grid), one invocation makes one. Nothing is shared. Exact but for the
// rounding of a sum.
@group(0) @binding(0) var<storage, read> images: array<f32>;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let column = group.x * WORKGROUP + t;
  let place = places[group.y];
  if (column >= N || place == 0xFFFFFFFFu) { return; }
  let at = group.y * N + column;
  let value = images[min(place, N_IMAGES - 1u) * STRIDE + COLUMN + column];
  if (ADDS) {
    x[at] += value;
  } else {
    x[at] = value;
  }
}
