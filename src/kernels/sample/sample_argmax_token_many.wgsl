// Argmax of many sequences, last dispatch: one workgroup a row finds the best of its COUNT bests. Exact.
//!import sample/sample_place_many
//!import sample/sample_argmax_best
//!import sample/sample_finite
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> bests: array<vec2u>;
@group(0) @binding(2) var<storage, read_write> token: array<u32>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  var best = kNoneBest;
  for (var i = t; i < COUNT; i += WORKGROUP) {
    best = better(best, bests[group.y * COUNT + i]);
  }
  let of_all = workgroup_best(t, best);
  if (t == 0u) {
    token[group.y] = finite_id(of_all);
  }
}
