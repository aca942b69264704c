// Shared by the two dispatches of log-probabilities: a segment's part, and the order of tokens. Needs
// common/argmax_key, whose keys are of plain l here.
const kMaxLogProbs = 20u;
const kPartHighest = 0u; // bits of the highest l
const kPartSum = 1u;     // bits of the sum of exp(l - highest)
const kPartBest = 2u;    // (key, id), the best first
const kPartWords = kPartBest + 2u * kMaxLogProbs;

fn value_of_key(key: u32) -> f32 { return bitcast<f32>(select(~key, key & 0x7FFFFFFFu, (key >> 31u) == 1u)); }

// `candidate`, unless it is `last` or better.
fn behind(last: vec2u, candidate: vec2u) -> vec2u {
  let is_behind = candidate.x < last.x || (candidate.x == last.x && candidate.y > last.y);
  return select(kNoneBest, candidate, is_behind);
}
