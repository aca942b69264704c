// Log-probabilities, before the choice, which may change the logits: one workgroup takes SEGMENT consecutive tokens of
// a row, keeps their plain l, and finds the highest, the sum of exp(l - highest), and the best tokens one after
// another.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/sample_values
//!import sample/sample_plain
//!import sample/sample_argmax_best
//!import sample/sample_logprobs
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> logits: array<u32>; // bits
@group(0) @binding(3) var<storage, read_write> plain: array<f32>;
@group(0) @binding(4) var<storage, read_write> parts: array<u32>; // kPart...

var<workgroup> sums: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) t: u32) {
  if (!chooses(group.y)) {
    return;
  }
  let place = place_of(group.y);
  let wanted = params[place.slot].logprobs;
  if (wanted == 0u) {
    return;
  }
  let logits_at = place.row * VOCAB_SIZE;
  let part = (place.row * SEGMENTS + group.x) * kPartWords;
  let first = group.x * SEGMENT + t;
  let end = min((group.x + 1u) * SEGMENT, VOCAB_SIZE);
  var best = kNoneBest;
  for (var id = first; id < end; id += WORKGROUP) {
    let l = plain_l(logits[logits_at + id]);
    plain[logits_at + id] = l;
    best = better(best, vec2u(argmax_key(bitcast<u32>(l)), id));
  }
  best = workgroup_best(t, best);
  let highest = value_of_key(best.x);
  var sum = 0.0;
  for (var id = first; id < end; id += WORKGROUP) {
    sum += exp(max(plain[logits_at + id] - highest, -100.0)); // what this invocation wrote
  }
  sums[t] = sum;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      sums[t] += sums[t + half];
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  if (t == 0u) {
    parts[part + kPartHighest] = bitcast<u32>(highest);
    parts[part + kPartSum] = bitcast<u32>(sums[0]);
  }
  for (var i = 0u; i < min(wanted - 1u, kMaxLogProbs); i++) {
    if (t == 0u) {
      parts[part + kPartBest + 2u * i] = best.x;
      parts[part + kPartBest + 2u * i + 1u] = best.y;
    }
    var next = kNoneBest;
    for (var id = first; id < end; id += WORKGROUP) {
      next = better(next, behind(best, vec2u(argmax_key(bitcast<u32>(plain[logits_at + id])), id)));
    }
    best = workgroup_best(t, next);
  }
}
