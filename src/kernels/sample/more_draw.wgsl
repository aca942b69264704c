// The samplers of more.h, last dispatch: points 3c to 7 over the candidates, the new mu, and the token after the
// history. One workgroup a row. Each point is a search (sample_search) among the tokens that the points before it left.
// Some need sums over these tokens first; the sums are integers, so that the candidates' order does not matter.
//!import common/mul_wide
//!import common/argmax_key
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_finite
//!import sample/sample_bins
//!import sample/sample_reach
//!import sample/sample_search
//!import sample/more_state
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> between: array<u32>;
@group(0) @binding(3) var<storage, read> candidates: array<vec2u>;
@group(0) @binding(4) var<storage, read_write> token: array<u32>;
@group(0) @binding(5) var<storage, read> spread: array<f32>;
@group(0) @binding(6) var<storage, read_write> more: array<u32>; // MoreState

// The searches, in order, and after them the new mu.
const kTopK = 0u;
const kTypical = 1u;
const kTopP = 2u;
const kBest = 3u;
const kXtc = 4u;
const kDraw = 5u;
const kSurprise = 6u;
// The terms of a sum.
const kSums = 7u;
const kWeights = 7u;
const kEntropy = 8u; // -p ln p without the sum of the weights, in units of 2^-30
const kCount = 9u;

const kAll = vec2u(0xFFFFFFFFu, 0xFFFFFFFFu);
const kMostThreshold = 0.5; // of XTC

struct Cut {
  top: f32,            // the highest l of all
  highest: f32,        // of what is left
  floor: f32,          // 3c
  last: vec2u,         // 4, 5: the worst that stays
  typical_last: vec2u, // 4a: the key of the least typical that stays
  centre: f32,         // 4a: the mean distance to `top`
  min_p: f32,          // 6
  best: vec2u,         // 6a: the best that stays
  least_p: f32,        // 6a: of what leaves, as a weight at temperature 1
  temperature: f32,    // 7
  least_weight: f32,   // mirostat: but for the best
}

fn typical_key(cut: Cut, c: vec2u) -> vec2u {
  return vec2u(bitcast<u32>(abs((cut.top - value_of(c.x)) - cut.centre)), c.y);
}

fn draw_weight(cut: Cut, c: vec2u) -> u32 { return weight_of(value_of(c.x), cut.highest, cut.temperature); }

fn stays(cut: Cut, c: vec2u) -> bool {
  let l = value_of(c.x);
  if (l < cut.floor || !is_left(c, cut.last) || !is_left(cut.best, c)) {
    return false;
  }
  if (any(cut.typical_last != kAll) && !is_left(typical_key(cut, c), cut.typical_last)) {
    return false;
  }
  if (cut.min_p > 0.0 && exp(max(l - cut.top, -60.0)) < cut.min_p) {
    return false;
  }
  return cut.least_weight <= 0.0 || f32(draw_weight(cut, c)) >= cut.least_weight || all(c == cut.best);
}

fn key_of(purpose: u32, cut: Cut, c: vec2u) -> vec2u {
  if (purpose == kTypical) {
    return typical_key(cut, c);
  }
  return c;
}

fn share(place: Place, purpose: u32, cut: Cut, c: vec2u) -> u32 {
  let l = value_of(c.x);
  let plain = weight_of(l, cut.highest, 1.0);
  switch (purpose) {
    case kTypical, kTopP: { return plain; }
    case kXtc: { return select(0u, 1u, f32(plain) >= cut.least_p || all(c == cut.best)); }
    case kDraw: { return draw_weight(cut, c); }
    case kWeights: { return select(plain, draw_weight(cut, c), is_mirostat(place.slot)); }
    case kEntropy: {
      let distance = min(cut.highest - l, 60.0);
      return select(u32(round(exp(-distance) * distance * 1073741824.0)), 0u, plain == 0u);
    }
    case kCount: { return select(1u, 0u, l <= kExcluded && cut.highest > kExcluded); }
    default: { return 1u; } // kTopK, kBest
  }
}

fn goal_of(place: Place, purpose: u32, total: vec2u) -> vec2u {
  let slot = place.slot;
  switch (purpose) {
    case kTopK: { return vec2u(params[slot].top_k, 0u); }
    case kTypical: { return top_p_target(total, params[slot].typical_p); }
    case kTopP: {
      let meta_at = place.row * kMetaWords;
      let whole = vec2u(between[meta_at + kMetaTotalLow], between[meta_at + kMetaTotalHigh]);
      return top_p_target(select(total, whole, is_top_p_first(slot)), params[slot].top_p);
    }
    case kBest: { return vec2u(1u, 0u); }
    case kXtc: { return total; } // the worst token
    default: { return add_64(scale_64(total, random_of(place, 0u)).xy, vec2u(1u, 0u)); }
  }
}

fn takes_xtc(place: Place) -> bool {
  let probability = params[place.slot].xtc_probability;
  let is_drawn = probability >= 1.0 || random_of(place, 1u) < u32(max(probability, 0.0) * 4294967296.0);
  return probability > 0.0 && is_drawn && params[place.slot].xtc_threshold <= kMostThreshold;
}

fn is_wanted(place: Place, purpose: u32) -> bool {
  let slot = place.slot;
  let mirostat = is_mirostat(slot);
  switch (purpose) {
    case kTopK: { return !mirostat && is_top_k(params[slot].top_k); }
    case kTypical: { return !mirostat && params[slot].typical_p < 1.0; }
    case kTopP: { return !mirostat && params[slot].top_p < 1.0; }
    case kXtc: { return !mirostat && takes_xtc(place); }
    case kSurprise: { return mirostat; }
    default: { return true; }
  }
}

fn needs_sums(place: Place, purpose: u32) -> bool {
  let is_dynamic = is_mirostat(place.slot) || params[place.slot].dynatemp_range > 0.0;
  return purpose == kTypical || purpose == kXtc || purpose == kSurprise || (purpose == kDraw && is_dynamic);
}

fn f32_of(sum: vec2u) -> f32 { return f32(sum.y) * 4294967296.0 + f32(sum.x); }

var<workgroup> found_sum: vec2u;

fn sum_of(t: u32, place: Place, purpose: u32, cut: Cut) -> f32 {
  clear_bins(t);
  var sum = vec2u();
  for (var i = t; i < between[place.row * kMetaWords + kMetaCount]; i += WORKGROUP) {
    let c = candidates[place.row * VOCAB_SIZE + i];
    if (stays(cut, c)) {
      sum = add_64(sum, vec2u(share(place, purpose, cut, c), 0u));
    }
  }
  add_to_bin(t, 1u, sum);
  scan_bins(t, false);
  if (t == 0u) {
    found_sum = bins_total();
  }
  return f32_of(workgroupUniformLoad(&found_sum));
}

// 3c. Every invocation adds up all segments, in the same order.
fn sigma_floor(place: Place, highest: f32) -> f32 {
  let wanted = params[place.slot].top_n_sigma;
  if (wanted <= 0.0 || is_mirostat(place.slot)) {
    return -kLimit;
  }
  var sum = vec3f();
  for (var i = 0u; i < SEGMENTS; i++) {
    let at = (place.row * SEGMENTS + i) * 3u;
    sum += vec3f(spread[at], spread[at + 1u], spread[at + 2u]);
  }
  let mean = sum.y / max(sum.x, 1.0);
  return highest - wanted * sqrt(max(sum.z / max(sum.x, 1.0) - mean * mean, 0.0));
}

// weights, entropy, count: sums of what is left.
fn dynamic_temperature(slot: u32, weights: f32, entropy: f32, count: f32) -> f32 {
  let temperature = params[slot].temperature;
  let range = params[slot].dynatemp_range;
  if (count < 2.0) {
    return temperature;
  }
  let low = max(temperature - range, 0.0);
  let h = log(weights / 2147483648.0) + 2.0 * entropy / weights;
  let part = clamp(h / log(count), 1e-6, 1.0);
  return low + (temperature + range - low) * pow(part, params[slot].dynatemp_exponent);
}

fn keep_token(place: Place, chosen: u32) {
  let at = place.slot * kMoreWords;
  let count = more[at + kMoreCount];
  more[at + kMoreHistory + count % HISTORY] = chosen;
  more[at + kMoreCount] = count + 1u;
  token[place.row] = chosen;
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
      keep_token(place, best.y);
      token[place.row] = finite_id(best);
    }
    return;
  }
  if (t == 0u) {
    found_token = vec2u();
  }
  let mu = bitcast<f32>(more[slot * kMoreWords + kMoreMu]);
  let highest = bitcast<f32>(between[place.row * kMetaWords + kMetaHighest]);
  var cut = Cut(highest, highest, sigma_floor(place, highest), kAll, kAll, 0.0, 0.0, vec2u(), 0.0,
                params[slot].temperature, 0.0);
  var chosen = vec2u();
  for (var purpose = kTopK; purpose < kSums; purpose++) { // a loop, as compilers would copy search() each time
    if (!is_wanted(place, purpose)) {
      continue;
    }
    var sums = vec3f();
    if (needs_sums(place, purpose)) {
      for (var i = 0u; i < 3u; i++) {
        sums[i] = sum_of(t, place, kSums + i, cut);
      }
    }
    if (purpose == kSurprise) {
      let surprise = -log2(f32(draw_weight(cut, chosen)) / sums.x);
      if (t == 0u) {
        let next = mu - params[slot].mirostat_eta * (surprise - params[slot].mirostat_tau);
        more[slot * kMoreWords + kMoreMu] = bitcast<u32>(next);
      }
      break;
    }
    if (purpose == kTypical) {
      cut.centre = 2.0 * sums.y / sums.x;
    } else if (purpose == kXtc) {
      cut.least_p = params[slot].xtc_threshold * sums.x;
    } else if (purpose == kDraw && is_mirostat(slot)) {
      cut.least_weight = sums.x * exp2(-clamp(mu, -64.0, 64.0));
    } else if (purpose == kDraw && params[slot].dynatemp_range > 0.0) {
      cut.temperature = dynamic_temperature(slot, sums.x, sums.y, sums.z);
    } else if (purpose == kBest && !is_mirostat(slot)) {
      cut.min_p = params[slot].min_p;
    }
    let found = search(t, place, purpose, cut);
    switch (purpose) {
      case kTopK, kTopP: { cut.last = found; }
      case kTypical: { cut.typical_last = found; }
      case kBest, kXtc: {
        cut.best = found;
        cut.highest = value_of(found.x);
      }
      default: { chosen = found; }
    }
  }
  if (t == 0u) {
    keep_token(place, min(chosen.y, VOCAB_SIZE - 1u));
    if (!is_finite(highest)) {
      token[place.row] = kNotFinite;
    }
  }
}
