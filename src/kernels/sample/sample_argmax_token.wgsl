// Argmax, second dispatch: one workgroup in all finds the best of the segments. Exact.
//!import sample/sample_argmax_best
@group(0) @binding(0) var<storage, read> segment_best: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> token: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  var best = vec2u(0u, 0xFFFFFFFFu);
  for (var i = t; i < SEGMENTS; i += WORKGROUP) {
    best = better(best, segment_best[i]);
  }
  let of_all = workgroup_best(t, best);
  if (t == 0u) {
    token[0] = of_all.y;
  }
}
