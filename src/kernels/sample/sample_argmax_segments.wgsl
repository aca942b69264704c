// Argmax, first dispatch: one workgroup finds the best of SEGMENT consecutive logits. Exact.
//!import sample/sample_argmax_best
@group(0) @binding(0) var<storage, read> logits: array<u32>; // the bits, since they may be needed to tell a NaN
@group(0) @binding(1) var<storage, read_write> segment_best: array<vec2u>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  var best = kNoneBest;
  let first = group.x * SEGMENT;
  for (var id = first + t; id < min(first + SEGMENT, VOCAB_SIZE); id += WORKGROUP) {
    best = better(best, vec2u(argmax_key(logits[id]), id));
  }
  let of_all = workgroup_best(t, best);
  if (t == 0u) {
    segment_best[group.x] = of_all;
  }
}
