// The better of two (key, id) pairs, and a workgroup's best: shared by both dispatches of argmax.
// Keys order f32 bits as unsigned integers: NaN first (0), then from -infinity to infinity, -0 equal to 0.
var<workgroup> best_keys: array<u32, WORKGROUP>;
var<workgroup> best_ids: array<u32, WORKGROUP>;

fn argmax_key(bits: u32) -> u32 {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return 0u;
  }
  if ((bits & 0x7FFFFFFFu) == 0u) {
    return 0x80000000u;
  }
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn better(a: vec2u, b: vec2u) -> vec2u {
  let b_wins = b.x > a.x || (b.x == a.x && b.y < a.y);
  return select(a, b, b_wins);
}

// For invocation 0; must be called in uniform control flow.
fn workgroup_best(t: u32, own: vec2u) -> vec2u {
  best_keys[t] = own.x;
  best_ids[t] = own.y;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      let best = better(vec2u(best_keys[t], best_ids[t]), vec2u(best_keys[t + half], best_ids[t + half]));
      best_keys[t] = best.x;
      best_ids[t] = best.y;
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  return vec2u(best_keys[0], best_ids[0]);
}
