// The first word of philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a random
// number that is a function of a counter and a key, so that no state has to be kept.
//!import common/mul_wide
fn philox(counter: vec4u, key: vec2u) -> u32 {
  var c = counter;
  var k = key;
  for (var round_number = 0u; round_number < 10u; round_number++) {
    let a = mul_wide(0xD2511F53u, c.x);
    let b = mul_wide(0xCD9E8D57u, c.z);
    c = vec4u(b.y ^ c.y ^ k.x, b.x, a.y ^ c.w ^ k.y, a.x);
    k += vec2u(0x9E3779B9u, 0xBB67AE85u);
  }
  return c.x;
}
