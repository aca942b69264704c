// Sampling, last dispatch: steps 4 to 7 of sample.h over the candidates, or the best of the segments of a greedy choice.
// One workgroup a row.
// All three are one search: the token at which a running sum, from the best token on, reaches a goal. Tokens are
// ordered by 50 bits, order_of(l) and the id; each pass sorts those that still match into 1,024 bins by the next ten
// bits, and keeps the bin where the sum gets there. Few candidates need no bins. Shared: the bins (sample_bins), the found token.
//!import common/mul_wide
//!import common/argmax_key
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_bins
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> between: array<u32>;
@group(0) @binding(3) var<storage, read> candidates: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

const kTopK = 0u;
const kTopP = 1u;
const kDraw = 2u;
const kPasses = 5u;
const kFew = 256u; // candidates: the work of search_few grows with their square

var<workgroup> found_token: vec2u;

fn digit(c: vec2u, pass_number: u32) -> u32 {
  switch (pass_number) {
    case 0u: { return c.x >> 22u; }
    case 1u: { return (c.x >> 12u) & 1023u; }
    case 2u: { return (c.x >> 2u) & 1023u; }
    case 3u: { return ((c.x & 3u) << 8u) | (c.y >> 10u); }
    default: { return c.y & 1023u; }
  }
}

// The bits that passes 0 to pass_number have fixed.
fn known_bits(pass_number: u32) -> vec2u {
  switch (pass_number) {
    case 0u: { return vec2u(0xFFC00000u, 0u); }
    case 1u: { return vec2u(0xFFFFF000u, 0u); }
    case 2u: { return vec2u(0xFFFFFFFCu, 0u); }
    case 3u: { return vec2u(0xFFFFFFFFu, 0x3FC00u); }
    default: { return vec2u(0xFFFFFFFFu, 0x3FFFFu); }
  }
}

fn with_digit(prefix: vec2u, pass_number: u32, value: u32) -> vec2u {
  switch (pass_number) {
    case 0u: { return vec2u(value << 22u, 0u); }
    case 1u: { return prefix | vec2u(value << 12u, 0u); }
    case 2u: { return prefix | vec2u(value << 2u, 0u); }
    case 3u: { return prefix | vec2u(value >> 8u, (value & 255u) << 10u); }
    default: { return prefix | vec2u(0u, value); }
  }
}

// What a token adds to the running sum of a search.
fn share(place: Place, purpose: u32, order: u32, highest: f32) -> u32 {
  let l = value_of(order);
  if (purpose == kTopK) {
    return 1u;
  }
  if (purpose == kTopP) {
    return weight_of(l, highest, 1.0);
  }
  if (params[place.slot].min_p > 0.0 && exp(max(l - highest, -60.0)) < params[place.slot].min_p) {
    return 0u;
  }
  return weight_of(l, highest, params[place.slot].temperature);
}

fn goal_of(place: Place, purpose: u32, total: vec2u) -> vec2u {
  let slot = place.slot;
  if (purpose == kTopK) {
    return vec2u(params[slot].top_k, 0u);
  }
  if (purpose == kTopP) {
    // Without top-k the candidates are not the whole vocabulary, so their total is not the one.
    let meta_at = place.row * kMetaWords;
    let whole = vec2u(between[meta_at + kMetaTotalLow], between[meta_at + kMetaTotalHigh]);
    return top_p_target(select(whole, total, is_top_k(params[slot].top_k)), params[slot].top_p);
  }
  return add_64(scale_64(total, random_of(place)).xy, vec2u(1u, 0u));
}

// Is `c` not after `last`, the worst token that stays?
fn is_left(c: vec2u, last: vec2u) -> bool { return c.x < last.x || (c.x == last.x && c.y <= last.y); }

// Few candidates, one an invocation: each adds up everything before it. The bins hold (order, id, share) here.
fn search_few(t: u32, place: Place, purpose: u32, last: vec2u, count: u32, highest: f32) -> vec2u {
  var own = vec2u();
  var own_share = 0u;
  workgroupBarrier(); // the bins are free
  if (t < count) {
    own = candidates[place.row * VOCAB_SIZE + t];
    if (is_left(own, last)) {
      own_share = share(place, purpose, own.x, highest);
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

// The token at which the running sum over the candidates up to `last` reaches its goal.
fn search(t: u32, place: Place, purpose: u32, last: vec2u) -> vec2u {
  let candidates_at = place.row * VOCAB_SIZE;
  let count = between[place.row * kMetaWords + kMetaCount];
  let highest = bitcast<f32>(between[place.row * kMetaWords + kMetaHighest]);
  if (count <= min(WORKGROUP, kFew)) {
    return search_few(t, place, purpose, last, count, highest);
  }
  var prefix = vec2u();
  var known = vec2u();
  var goal = vec2u();
  for (var pass_number = 0u; pass_number < kPasses; pass_number++) {
    clear_bins(t);
    for (var i = t; i < count; i += WORKGROUP) {
      let c = candidates[candidates_at + i];
      if (is_left(c, last) && all((c & known) == prefix)) {
        add_to_bin(digit(c, pass_number), 1u, vec2u(share(place, purpose, c.x, highest), 0u));
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
    if (is_left(c, last) && all((c & known) == prefix)) {
      found_token = c; // one candidate only
    }
  }
  return workgroupUniformLoad(&found_token);
}

// The best of the segments' bests.
fn greedy_token(t: u32, place: Place) -> u32 {
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
  return scan_highs[0];
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let slot = place.slot;
  if (params[slot].greedy != 0u) {
    let best = greedy_token(t, place);
    if (t == 0u) {
      token[place.row] = best;
    }
    return;
  }
  if (t == 0u) {
    found_token = vec2u();
  }
  var last = vec2u(0xFFFFFFFFu, 0xFFFFFFFFu);
  for (var purpose = kTopK; purpose <= kDraw; purpose++) { // a loop, as compilers would copy search() three times
    if ((purpose == kTopK && !is_top_k(params[slot].top_k)) || (purpose == kTopP && params[slot].top_p >= 1.0)) {
      continue;
    }
    last = search(t, place, purpose, last);
  }
  if (t == 0u) {
    token[place.row] = min(last.y, VOCAB_SIZE - 1u);
  }
}
