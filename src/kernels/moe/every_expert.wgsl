// Routes to all experts in their order: see moe/every_expert.h. One invocation writes a word of a row (y of the grid):
// the ids, then the weights. Nothing is shared.
@group(0) @binding(0) var<storage, read_write> routes: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let i = group.x * WORKGROUP + t;
  if (i >= 2u * N_EXPERTS) { return; }
  routes[group.y * 2u * N_EXPERTS + i] = select(bitcast<u32>(1.0), i, i < N_EXPERTS);
}
