// Log-probabilities, after the choice: one workgroup a row adds up the segments' parts, and writes the entry of the
// ring.
//!import common/mul_wide
//!import sample/sample_place
//!import sample/logprobs_place
//!import sample/sample_values
//!import sample/sample_argmax_best
//!import sample/sample_logprobs
@group(0) @binding(0) var<storage, read> state: StepState;
@group(0) @binding(1) var<storage, read> params: array<SampleParams>;
@group(0) @binding(2) var<storage, read> token: array<u32>;
@group(0) @binding(3) var<storage, read> plain: array<f32>;
@group(0) @binding(4) var<storage, read> parts: array<u32>;
@group(0) @binding(5) var<storage, read_write> ring: array<u32>; // LogProbEntry

const kEntryWords = 2u + 2u * kMaxLogProbs;

var<workgroup> values: array<f32, WORKGROUP>;

// Returns the logarithm of the sum of exp(l).
fn log_of_sum(t: u32, parts_at: u32) -> f32 {
  var highest = -kLimit;
  for (var i = t; i < SEGMENTS; i += WORKGROUP) {
    highest = max(highest, bitcast<f32>(parts[parts_at + i * kPartWords + kPartHighest]));
  }
  values[t] = highest;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      values[t] = max(values[t], values[t + half]);
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  highest = values[0];
  workgroupBarrier(); // all have read
  var sum = 0.0;
  for (var i = t; i < SEGMENTS; i += WORKGROUP) {
    let part = parts_at + i * kPartWords;
    let distance = max(bitcast<f32>(parts[part + kPartHighest]) - highest, -100.0);
    sum += bitcast<f32>(parts[part + kPartSum]) * exp(distance);
  }
  values[t] = sum;
  workgroupBarrier();
  for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
    if (t < half) {
      values[t] += values[t + half];
    }
    workgroupBarrier(); // the next level reads what this one wrote
  }
  return highest + log(values[0]);
}

fn logprob(l: f32, log_sum: f32) -> u32 { return bitcast<u32>(select(l - log_sum, -kLimit, l <= kExcluded)); }

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
  let parts_at = place.row * SEGMENTS * kPartWords;
  let log_sum = log_of_sum(t, parts_at);
  let at = ring_place(place);
  let entry = ((at.x % RING_STEPS) * SLOTS + at.y) * kEntryWords;
  let count = min(min(wanted - 1u, kMaxLogProbs), VOCAB_SIZE);
  if (t == 0u) {
    let chosen = min(token[place.row], VOCAB_SIZE - 1u);
    ring[entry] = logprob(plain[place.row * VOCAB_SIZE + chosen], log_sum);
    ring[entry + 1u] = count;
  }
  var best = vec2u(0xFFFFFFFFu, 0u); // better than all
  for (var i = 0u; i < count; i++) {
    var next = kNoneBest;
    for (var j = t; j < SEGMENTS * count; j += WORKGROUP) {
      let at = parts_at + (j / count) * kPartWords + kPartBest + 2u * (j % count);
      next = better(next, behind(best, vec2u(parts[at], parts[at + 1u])));
    }
    best = workgroup_best(t, next);
    if (t == 0u) {
      ring[entry + 2u + 2u * i] = best.y;
      ring[entry + 3u + 2u * i] = logprob(value_of_key(best.x), log_sum);
    }
  }
}
