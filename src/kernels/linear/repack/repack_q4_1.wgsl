// q4_1: f16 d and m, 16 bytes of nibbles; w = d*q + m.
//!import linear/repack/repack_bytes

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 20u * u;
  let nibbles = words_at(at + 4u);
  return Unit(low_nibbles(nibbles), high_nibbles(nibbles), word_at(at) ^ 0x80000000u);
}
