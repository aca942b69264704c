// q5_1: f16 d and m, 32 fifth bits, 16 bytes of nibbles; w = d*q + m.
//!import linear/repack/repack_bytes

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 24u * u;
  let fifth = word_at(at + 4u);
  let nibbles = words_at(at + 8u);
  return Unit(low_nibbles(nibbles) | fifth_bits(fifth), high_nibbles(nibbles) | fifth_bits(fifth >> 16u),
              word_at(at) ^ 0x80000000u);
}
