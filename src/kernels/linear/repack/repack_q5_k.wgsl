// q5_k: 256 weights in 176 bytes: as q4_k, with 32 bytes of fifth bits (bit g of byte i: weight i of group g) before
// the nibbles.
//!import linear/repack/repack_k_scales

fn fifth_of(bytes: vec4<u32>, group: u32) -> vec4<u32> {
  return ((bytes >> vec4<u32>(group)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn read_unit(row_at: u32, u: u32) -> Unit {
  let block = row_at + 176u * (u >> 3u);
  let group = u & 7u;
  let at = block + 48u + 32u * (group >> 1u);
  let shift = vec4<u32>(4u * (group & 1u));
  return Unit(low_nibbles(words_at(at) >> shift) | fifth_of(words_at(block + 16u), group),
              low_nibbles(words_at(at + 16u) >> shift) | fifth_of(words_at(block + 32u), group),
              group_halves(block, group));
}
