// An argmax takes the better of two logits, as (key, id) pairs: the higher key, then the lower id. Keys order f32 bits
// as unsigned integers: NaN first (0), then from -infinity to infinity, -0 equal to 0.
const kNoneBest = vec2<u32>(0u, 0xFFFFFFFFu); // loses against every logit, a NaN too

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
