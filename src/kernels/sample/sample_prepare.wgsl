// Sampling, first dispatch: steps 1 to 3 of sample.h, in place, and the highest value of each segment. One workgroup
// takes SEGMENT consecutive tokens of a row; the first also clears the sums that the next dispatches add to. For a
// greedy choice it only finds the best of the plain logits.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_plain
//!import sample/sample_bias
//!import sample/sample_argmax_best
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> bias: array<vec2u>; // (token, bits of an f32)
@group(0) @binding(3) var<storage, read> counts: array<u32>;
@group(0) @binding(4) var<storage, read_write> logits: array<u32>; // bits
@group(0) @binding(5) var<storage, read_write> segment_max: array<f32>;
@group(0) @binding(6) var<storage, read_write> histogram: array<u32>;
@group(0) @binding(7) var<storage, read_write> between: array<u32>; // kMeta...

var<workgroup> maxima: array<f32, WORKGROUP>;

fn prepared(place: Place, id: u32) -> f32 {
  let slot = place.slot;
  let bits = logits[place.row * VOCAB_SIZE + id];
  if (bits == 0x7F800000u) {
    return kInfinite;
  }
  var l = plain_l(bits);
  if (l <= kExcluded) {
    return -kLimit;
  }
  let count = counts[slot * VOCAB_SIZE + id];
  if (count > 0u) {
    l = select(l * params[slot].repeat_penalty, l / params[slot].repeat_penalty, l > 0.0);
    l -= params[slot].presence_penalty + params[slot].frequency_penalty * f32(count);
  }
  for (var i = 0u; i < bias_count_of(place); i++) {
    let entry = bias_of(place, i);
    if (entry.x == id) {
      l += clean(entry.y);
    }
  }
  if (l <= kExcluded) {
    return -kLimit;
  }
  return min(l, kLimit);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let logits_at = place.row * VOCAB_SIZE;
  let meta_at = place.row * kMetaWords;
  let first = group.x * SEGMENT;
  let end = min(first + SEGMENT, VOCAB_SIZE);
  if (params[place.slot].greedy != 0u) {
    var best = kNoneBest;
    for (var id = first + t; id < end; id += WORKGROUP) {
      best = better(best, vec2u(argmax_key(logits[logits_at + id]), id));
    }
    let of_all = workgroup_best(t, best);
    if (t == 0u) {
      between[meta_at + kMetaBests + 2u * group.x] = of_all.x;
      between[meta_at + kMetaBests + 2u * group.x + 1u] = of_all.y;
    }
    return;
  }
  var highest = -kLimit;
  for (var id = first + t; id < end; id += WORKGROUP) {
    let l = prepared(place, id);
    logits[logits_at + id] = bitcast<u32>(l);
    highest = max(highest, l);
  }
  maxima[t] = highest;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      maxima[t] = max(maxima[t], maxima[t + half]);
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  if (t == 0u) {
    segment_max[place.row * SEGMENTS + group.x] = maxima[0];
  }
  if (group.x == 0u) {
    for (var i = t; i < kHistogramWords; i += WORKGROUP) {
      histogram[place.row * kHistogramWords + i] = 0u;
    }
    if (t == 0u) {
      between[meta_at + kMetaCount] = 0u;
    }
  }
}
