// q4_k: 256 weights in 144 bytes: d, dmin, scales (repack_k_scales), then 32 bytes of nibbles for every two groups of
// 32.
//!import linear/repack/repack_k_scales

fn read_unit(row_at: u32, u: u32) -> Unit {
  let block = row_at + 144u * (u >> 3u);
  let group = u & 7u;
  let at = block + 16u + 32u * (group >> 1u);
  let shift = vec4<u32>(4u * (group & 1u));
  return Unit(low_nibbles(words_at(at) >> shift), low_nibbles(words_at(at + 16u) >> shift), group_halves(block, group));
}
