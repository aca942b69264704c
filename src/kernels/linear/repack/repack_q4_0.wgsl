// q4_0: f16 d, 16 bytes of nibbles; w = d*(q-8), here scale*q - min.
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 18u * u;
  let d = half_at(at);
  let nibbles = words_at(at + 2u);
  return Unit(low_nibbles(nibbles), high_nibbles(nibbles), d | (scaled_half(d, 8) << 16u));
}
