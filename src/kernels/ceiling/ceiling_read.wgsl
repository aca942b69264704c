// Reads the whole buffer once. An invocation sums vectors STEP apart from its first on, four loads in flight; its
// workgroup starts at group * GROUP_STEP, so that either the grid strides over the buffer or each workgroup has a
// range of its own. The sum is written so that no load can be left out. Nothing shared; exact modulo 2^32.
@group(0) @binding(0) var<storage, read> buffer: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec4u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  var at = group.x * GROUP_STEP + t;
  var a = vec4u();
  var b = vec4u();
  var c = vec4u();
  var d = vec4u();
  for (var i = 0u; i < LOOPS; i++) {
    a += buffer[at];
    b += buffer[at + STEP];
    c += buffer[at + 2u * STEP];
    d += buffer[at + 3u * STEP];
    at += 4u * STEP;
  }
  sums[group.x * WORKGROUP + t] = a + b + c + d;
}
