// A workgroup's best (key, id) pair (common/argmax_key), in two levels: fewer barriers than a tree.
// WORKGROUP: a power of two.
//!import common/argmax_key
const kBestParts = min(16u, WORKGROUP);
var<workgroup> best_of: array<vec2u, WORKGROUP>;
var<workgroup> best_parts: array<vec2u, kBestParts>;

// For every invocation; must be called in uniform control flow.
fn workgroup_best(t: u32, own: vec2u) -> vec2u {
  best_of[t] = own;
  workgroupBarrier();
  if (t < kBestParts) {
    var best = own;
    for (var i = t + kBestParts; i < WORKGROUP; i += kBestParts) {
      best = better(best, best_of[i]);
    }
    best_parts[t] = best;
  }
  workgroupBarrier(); // best_parts
  var best = best_parts[0];
  for (var i = 1u; i < kBestParts; i++) {
    best = better(best, best_parts[i]);
  }
  return best;
}
