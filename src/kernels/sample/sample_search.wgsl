// One search among the candidates that stay: the token at which a running sum, from the first token on, reaches a goal.
// Tokens are ordered by keys of 52 bits, mostly order_of(l) and the id, of 20 bits; each pass sorts those that still
// match into 1,024 bins by the next ten bits, and keeps the bin where the sum gets there. Few candidates need no bins.
// Shared: the bins (sample_bins), the found token. Needs of the entry, whose `purpose` says which search it is:
//   Cut, stays(cut, c): what left before; key_of(purpose, cut, c), which no two candidates share;
//   share(place, purpose, cut, c): what a token adds to the sum; goal_of(place, purpose, total).
const kPasses = 6u;
const kFew = 256u; // candidates: the work of search_few grows with their square

var<workgroup> found_token: vec2u;

fn digit(c: vec2u, pass_number: u32) -> u32 {
  switch (pass_number) {
    case 0u: { return c.x >> 22u; }
    case 1u: { return (c.x >> 12u) & 1023u; }
    case 2u: { return (c.x >> 2u) & 1023u; }
    case 3u: { return ((c.x & 3u) << 8u) | (c.y >> 12u); }
    case 4u: { return (c.y >> 2u) & 1023u; }
    default: { return c.y & 3u; }
  }
}

// The bits that passes 0 to pass_number have fixed.
fn known_bits(pass_number: u32) -> vec2u {
  switch (pass_number) {
    case 0u: { return vec2u(0xFFC00000u, 0u); }
    case 1u: { return vec2u(0xFFFFF000u, 0u); }
    case 2u: { return vec2u(0xFFFFFFFCu, 0u); }
    case 3u: { return vec2u(0xFFFFFFFFu, 0xFF000u); }
    case 4u: { return vec2u(0xFFFFFFFFu, 0xFFFFCu); }
    default: { return vec2u(0xFFFFFFFFu, 0xFFFFFu); }
  }
}

fn with_digit(prefix: vec2u, pass_number: u32, value: u32) -> vec2u {
  switch (pass_number) {
    case 0u: { return vec2u(value << 22u, 0u); }
    case 1u: { return prefix | vec2u(value << 12u, 0u); }
    case 2u: { return prefix | vec2u(value << 2u, 0u); }
    case 3u: { return prefix | vec2u(value >> 8u, (value & 255u) << 12u); }
    case 4u: { return prefix | vec2u(0u, value << 2u); }
    default: { return prefix | vec2u(0u, value); }
  }
}

// Is `c` not after `last`, the worst that stays?
fn is_left(c: vec2u, last: vec2u) -> bool { return c.x < last.x || (c.x == last.x && c.y <= last.y); }

// Few candidates, one an invocation: each adds up everything before it. The bins hold (key, share) here.
fn search_few(t: u32, place: Place, purpose: u32, cut: Cut, count: u32) -> vec2u {
  var own = vec2u();
  var own_share = 0u;
  workgroupBarrier(); // the bins are free
  if (t < count) {
    let c = candidates[place.row * VOCAB_SIZE + t];
    own = key_of(purpose, cut, c);
    if (stays(cut, c)) {
      own_share = share(place, purpose, cut, c);
    }
    atomicStore(&bin_lows[t], own.x);
    atomicStore(&bin_highs[t], own.y);
    atomicStore(&bin_counts[t], own_share);
  }
  workgroupBarrier(); // and filled
  if (own_share > 0u) {
    var before = vec2u();
    var total = vec2u();
    for (var i = 0u; i < count; i++) {
      let other = vec2u(atomicLoad(&bin_lows[i]), atomicLoad(&bin_highs[i]));
      let other_share = atomicLoad(&bin_counts[i]);
      total = add_64(total, vec2u(other_share, 0u));
      if (any(other != own) && is_left(other, own)) {
        before = add_64(before, vec2u(other_share, 0u));
      }
    }
    let wanted = goal_of(place, purpose, total);
    let goal = select(wanted, total, less_64(total, wanted));
    if (less_64(before, goal) && !less_64(add_64(before, vec2u(own_share, 0u)), goal)) {
      found_token = own; // one candidate only
    }
  }
  return workgroupUniformLoad(&found_token);
}

// The key of the token at which the running sum over the candidates that stay reaches its goal, which must be above 0,
// as must be the sum of all.
fn search(t: u32, place: Place, purpose: u32, cut: Cut) -> vec2u {
  let candidates_at = place.row * VOCAB_SIZE;
  let count = between[place.row * kMetaWords + kMetaCount];
  if (count <= min(WORKGROUP, kFew)) {
    return search_few(t, place, purpose, cut, count);
  }
  var prefix = vec2u();
  var known = vec2u();
  var goal = vec2u();
  for (var pass_number = 0u; pass_number < kPasses; pass_number++) {
    clear_bins(t);
    for (var i = t; i < count; i += WORKGROUP) {
      let c = candidates[candidates_at + i];
      let key = key_of(purpose, cut, c);
      if (stays(cut, c) && all((key & known) == prefix)) {
        add_to_bin(digit(key, pass_number), 1u, vec2u(share(place, purpose, cut, c), 0u));
      }
    }
    scan_bins(t, false);
    if (pass_number == 0u) {
      goal = goal_of(place, purpose, bins_total());
    }
    let bin = find_bin(t, false, goal);
    goal = sub_64(goal, bin.zw);
    prefix = with_digit(prefix, pass_number, bin.x);
    known = known_bits(pass_number);
    if (bin.y == 1u) {
      break;
    }
  }
  for (var i = t; i < count; i += WORKGROUP) {
    let c = candidates[candidates_at + i];
    let key = key_of(purpose, cut, c);
    if (stays(cut, c) && all((key & known) == prefix)) {
      found_token = key; // one candidate only
    }
  }
  return workgroupUniformLoad(&found_token);
}

// The best of the segments' bests.
fn greedy_token(t: u32, place: Place) -> vec2u {
  let bests_at = place.row * kMetaWords + kMetaBests;
  var best = kNoneBest;
  for (var i = t; i < SEGMENTS; i += WORKGROUP) {
    best = better(best, vec2u(between[bests_at + 2u * i], between[bests_at + 2u * i + 1u]));
  }
  scan_lows[t] = best.x;
  scan_highs[t] = best.y;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      best = better(best, vec2u(scan_lows[t + half], scan_highs[t + half]));
      scan_lows[t] = best.x;
      scan_highs[t] = best.y;
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  return vec2u(scan_lows[0], scan_highs[0]);
}
