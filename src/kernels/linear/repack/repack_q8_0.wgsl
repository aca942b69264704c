// q8_0: f16 d, 32 int8; w = d*q.
//!import linear/repack/repack_bytes

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 34u * u;
  return Unit(words_at(at + 2u), words_at(at + 18u), half_at(at));
}
