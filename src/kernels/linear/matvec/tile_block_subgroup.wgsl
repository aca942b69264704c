// As tile_block, for subgroups of 16 invocations or more: a block's values are those of 16 neighbouring invocations, so
// that nothing waits for a barrier. Every invocation of the workgroup calls these.
//!import common/q8_block

// Blocks begin at multiples of 16 in a subgroup too.
fn block_max(value: f32) -> f32 {
  let two = max(value, subgroupShuffleXor(value, 1u));
  let four = max(two, subgroupShuffleXor(two, 2u));
  let eight = max(four, subgroupShuffleXor(four, 4u));
  return max(eight, subgroupShuffleXor(eight, 8u));
}

fn store_blocks(local: u32, group: u32, value: f32) {
  let largest = block_max(abs(value));
  let q = q8_quantise(vec4<f32>(value), largest).x;
  let byte = (bitcast<u32>(q) & 0xffu) << (8u * (local & 3u));
  let half_word = byte | subgroupShuffleXor(byte, 1u);
  let word = half_word | subgroupShuffleXor(half_word, 2u);
  let two = q + subgroupShuffleXor(q, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  let eight = four + subgroupShuffleXor(four, 4u);
  let sum = eight + subgroupShuffleXor(eight, 8u);
  if (local >= ROWS) { return; }
  let at = group * ROWS + local;
  if ((local & 3u) == 0u) { y_q8[at >> 2u] = word; }
  if ((local & 15u) == 0u) {
    let d = largest / 127.0;
    y_q8[Q8_PLANE1 + (at >> 3u)] = bitcast<u32>(d);
    y_q8[Q8_PLANE1 + (at >> 3u) + 1u] = bitcast<u32>(d * f32(sum));
  }
}

fn block_total(local: u32, value: f32) -> f32 {
  let two = value + subgroupShuffleXor(value, 1u);
  let four = two + subgroupShuffleXor(two, 2u);
  let eight = four + subgroupShuffleXor(four, 4u);
  return eight + subgroupShuffleXor(eight, 8u);
}
