// A part of each head: see latent/latent.h. One invocation copies one value of a row (y of the grid). Nothing is
// shared.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let i = group.x * WORKGROUP + t;
  if (i >= N_HEADS * N) { return; }
  let head = group.y * N_HEADS + i / N;
  y[group.y * N_HEADS * N + i] = x[head * HEAD_DIM + FIRST + i % N];
}
