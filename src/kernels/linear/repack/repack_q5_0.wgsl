// q5_0: f16 d, 32 fifth bits, 16 bytes of nibbles; w = d*(q-16), here scale*q - min.
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 22u * u;
  let d = half_at(at);
  let fifth = word_at(at + 2u);
  let nibbles = words_at(at + 6u);
  return Unit(low_nibbles(nibbles) | fifth_bits(fifth), high_nibbles(nibbles) | fifth_bits(fifth >> 16u),
              d | (scaled_half(d, 16) << 16u));
}
