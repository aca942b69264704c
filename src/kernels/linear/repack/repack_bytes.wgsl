// Shared by repack's readers: bytes of `raw`, whose blocks begin at any byte, and the unit they make.

// Weights 0..15 and 16..31, a code a byte; `halves`: two f16, the scale and the minimum (tile_q6: two scales).
struct Unit {
  first: vec4<u32>,
  second: vec4<u32>,
  halves: u32,
}

fn byte_at(at: u32) -> u32 { return (raw[at >> 2u] >> (8u * (at & 3u))) & 0xFFu; }
// `at`: even.
fn half_at(at: u32) -> u32 { return (raw[at >> 2u] >> (8u * (at & 2u))) & 0xFFFFu; }
fn word_at(at: u32) -> u32 {
  let low = raw[at >> 2u];
  let shift = 8u * (at & 3u);
  if (shift == 0u) { return low; }
  return (low >> shift) | (raw[(at >> 2u) + 1u] << (32u - shift));
}
fn words_at(at: u32) -> vec4<u32> {
  return vec4<u32>(word_at(at), word_at(at + 4u), word_at(at + 8u), word_at(at + 12u));
}

fn low_nibbles(bytes: vec4<u32>) -> vec4<u32> { return bytes & vec4<u32>(0x0F0F0F0Fu); }
fn high_nibbles(bytes: vec4<u32>) -> vec4<u32> { return (bytes >> vec4<u32>(4u)) & vec4<u32>(0x0F0F0F0Fu); }

// The low 16 bits to the fifth bits of 16 codes.
fn fifth_bits(bits: u32) -> vec4<u32> {
  let b = (vec4<u32>(bits) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
  // Bit c of four goes to bit 8c + 4.
  return ((b * 0x00204081u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}
