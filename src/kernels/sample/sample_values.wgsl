// Shared by the four dispatches of the sampling chain: parameters, the order of tokens, integer weights, bins. sample.h
// defines each step.

struct SampleParams { // sample.h
  temperature: f32,
  top_p: f32,
  min_p: f32,
  top_k: u32,
  repeat_penalty: f32,
  presence_penalty: f32,
  frequency_penalty: f32,
  bias_count: u32,
  greedy: u32,
  logprobs: u32,
  min_tokens: u32, // from here on: more.h
  top_n_sigma: f32,
  typical_p: f32,
  xtc_probability: f32,
  xtc_threshold: f32,
  dynatemp_range: f32,
  dynatemp_exponent: f32,
  mirostat_tau: f32,
  mirostat_eta: f32,
  dry_multiplier: f32,
  dry_base: f32,
  dry_allowed_length: u32,
  @size(168) dry_range: u32,
}

// Between the dispatches, for each row (sample_place).
const kBins = 1024u;
const kHistogramWords = 3u * kBins; // counts, low sums, high sums
const kMetaCount = 0u;    // candidates gathered
const kMetaHighest = 1u;  // bits of the highest l
const kMetaTotalLow = 2u; // sum of the weights (temperature 1) of the whole vocabulary
const kMetaTotalHigh = 3u;
const kMetaBests = 4u; // greedy: the best of each segment, as (key, id)
const kMetaWords = kMetaBests + 2u * SEGMENTS;

const kLimit = 1e30;     // |l| is at most this
const kExcluded = -1e29; // at or below: excluded by -infinity, NaN or a bias
const kInfinite = 2e30;  // l of an infinite logit, whatever is added to it
// Bins of distance to the highest l: fine where weights are not 0 yet, then one a unit, so that top-k over logits that
// lie far apart still cuts well. Only the speed depends on them.
const kFineReach = 16.0;
const kFineBins = 512u;

// f32 bits -> finite, clamped value. By bits, since compilers may assume that there are no infinities.
fn clean(bits: u32) -> f32 {
  if ((bits & 0x7F800000u) == 0x7F800000u) {
    return select(-kLimit, kLimit, bits == 0x7F800000u);
  }
  return clamp(bitcast<f32>(bits), -kLimit, kLimit);
}

// Can a token be drawn, by the highest l of all?
fn is_finite(highest: f32) -> bool { return highest > kExcluded && highest < kInfinite; }

// Ascending from the best token on.
fn order_of(l: f32) -> u32 {
  let bits = bitcast<u32>(l);
  if ((bits & 0x7FFFFFFFu) == 0u) {
    return 0x7FFFFFFFu; // 0 and -0 alike
  }
  return select(~(bits | 0x80000000u), bits, (bits >> 31u) == 1u);
}

fn value_of(order: u32) -> f32 {
  return bitcast<f32>(select(order ^ 0x7FFFFFFFu, order, (order >> 31u) == 1u));
}

fn bin_of(l: f32, highest: f32) -> u32 {
  let distance = highest - l;
  if (distance < kFineReach) {
    return u32(distance * (f32(kFineBins) / kFineReach));
  }
  return kFineBins + u32(min(distance - kFineReach, f32(kBins - kFineBins - 1u)));
}

// exp((l - highest) / temperature) in units of 2^-31.
fn weight_of(l: f32, highest: f32, temperature: f32) -> u32 {
  if (l <= kExcluded && highest > kExcluded) {
    return 0u;
  }
  return u32(round(exp(max((l - highest) / max(temperature, 1e-7), -60.0)) * 2147483648.0));
}

// 64-bit sums as (low, high).
fn add_64(a: vec2u, b: vec2u) -> vec2u {
  let low = a.x + b.x;
  return vec2u(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn sub_64(a: vec2u, b: vec2u) -> vec2u { return vec2u(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }

fn less_64(a: vec2u, b: vec2u) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// floor(a * fraction / 2^32), and whether something was cut off. a < 2^63.
fn scale_64(a: vec2u, fraction: u32) -> vec3u {
  let low = mul_wide(a.x, fraction);
  let scaled = add_64(mul_wide(a.y, fraction), vec2u(low.y, 0u));
  return vec3u(scaled, select(0u, 1u, low.x != 0u));
}

fn is_top_k(top_k: u32) -> bool { return top_k > 0u && top_k < VOCAB_SIZE; }

// The sum that top-p has to reach: ceil(total * top_p), at least 1. top_p < 1.
fn top_p_target(total: vec2u, top_p: f32) -> vec2u {
  let scaled = scale_64(total, u32(max(top_p, 0.0) * 4294967296.0));
  let target_sum = add_64(scaled.xy, vec2u(scaled.z, 0u));
  return select(target_sum, vec2u(1u, 0u), all(target_sum == vec2u()));
}
