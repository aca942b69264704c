// Eight independent chains of fused multiply-adds an invocation, 64 operations a round, all in registers. The factors
// come from memory so that compilers cannot compute ahead. Nothing shared; not compared with an oracle but for a fixed
// point.
@group(0) @binding(0) var<storage, read> seed: array<f32>;
@group(0) @binding(1) var<storage, read_write> results: array<f32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  let m = vec4f(seed[0]);
  let c = vec4f(seed[1]);
  var a = vec4f(f32(t)) + vec4f(0.0, 1.0, 2.0, 3.0);
  var b = a + vec4f(4.0);
  for (var i = 0u; i < ROUNDS; i++) {
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
    a = fma(a, m, c);
    b = fma(b, m, c);
  }
  let sum = a + b;
  results[group.x * WORKGROUP + t] = sum.x + sum.y + sum.z + sum.w;
}
