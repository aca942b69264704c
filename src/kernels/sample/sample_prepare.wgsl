// Sampling, first dispatch: steps 1 to 3 of sample.h, in place, and the highest value of each segment. One workgroup
// takes SEGMENT consecutive tokens; the first also clears what the next dispatches add to.
//!import common/mul_wide
//!import sample/sample_values
@group(0) @binding(0) var<storage, read> params: SampleParams;
@group(0) @binding(1) var<storage, read> bias: array<vec2u>; // (token, bits of an f32)
@group(0) @binding(2) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<storage, read_write> logits: array<u32>; // bits
@group(0) @binding(4) var<storage, read_write> segment_max: array<f32>;
@group(0) @binding(5) var<storage, read_write> histogram: array<u32>; // kBins counts, low sums, high sums
@group(0) @binding(6) var<storage, read_write> between: array<u32>;   // kMeta...

var<workgroup> maxima: array<f32, WORKGROUP>;

// c tanh(l / c) from exp, since WGSL's tanh may be as coarse as 2^-11.
fn soften(l: f32) -> f32 {
  let e = exp(-2.0 * min(abs(l) / SOFTCAP, 40.0));
  return sign(l) * SOFTCAP * (1.0 - e) / (1.0 + e);
}

fn prepared(id: u32) -> f32 {
  var l = clean(logits[id]);
  if (l <= kExcluded) {
    return -kLimit;
  }
  l *= LOGIT_SCALE;
  if (SOFTCAP > 0.0) {
    l = soften(l);
  }
  let count = counts[id];
  if (count > 0u) {
    l = select(l * params.repeat_penalty, l / params.repeat_penalty, l > 0.0);
    l -= params.presence_penalty + params.frequency_penalty * f32(count);
  }
  for (var i = 0u; i < min(params.bias_count, MAX_BIAS); i++) {
    if (bias[i].x == id) {
      l += clean(bias[i].y);
    }
  }
  if (l <= kExcluded) {
    return -kLimit;
  }
  return min(l, kLimit);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  var highest = -kLimit;
  let first = group.x * SEGMENT;
  for (var id = first + t; id < min(first + SEGMENT, VOCAB_SIZE); id += WORKGROUP) {
    let l = prepared(id);
    logits[id] = bitcast<u32>(l);
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
    segment_max[group.x] = maxima[0];
  }
  if (group.x == 0u) {
    for (var i = t; i < 3u * kBins; i += WORKGROUP) {
      histogram[i] = 0u;
    }
    if (t == 0u) {
      between[kMetaCount] = 0u;
    }
  }
}
