// Word i of the buffer becomes i. One invocation writes vectors GROUPS * WORKGROUP apart. Nothing shared; exact.
@group(0) @binding(0) var<storage, read_write> buffer: array<vec4u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3u) {
  for (var i = id.x; i < VECTORS; i += GROUPS * WORKGROUP) {
    let first = i * 4u;
    buffer[i] = vec4u(first, first + 1u, first + 2u, first + 3u);
  }
}
