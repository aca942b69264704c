// Argmax, last dispatch: one workgroup in all finds the best of COUNT bests, of segments of the logits or of the tiles
// of the product that made them (Linear::best). Exact.
//!import sample/sample_argmax_best
//!import sample/sample_finite
@group(0) @binding(0) var<storage, read> bests: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> token: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) t: u32) {
  var best = kNoneBest;
  for (var i = t; i < COUNT; i += WORKGROUP) {
    best = better(best, bests[i]);
  }
  let of_all = workgroup_best(t, best);
  if (t == 0u) {
    token[0] = finite_id(of_all);
  }
}
