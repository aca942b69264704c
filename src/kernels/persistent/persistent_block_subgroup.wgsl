// As persistent_block, for subgroups of 16 invocations or more: a block's values are those of 16 neighbouring
// invocations. `subgroup_invocation`: of the subgroup.
//!import persistent/persistent_exchange
//!import persistent/persistent_values

fn word_of_block(local: u32, subgroup_invocation: u32, value: f32, square: f32) -> u32 {
  var largest = abs(value);
  var sum = square;
  for (var distance = 1u; distance < 16u; distance <<= 1u) {
    largest = max(largest, subgroupShuffleXor(largest, distance));
    sum += subgroupShuffleXor(sum, distance);
  }
  let inverse = select(0.0, 127.0 / largest, largest > 0.0);
  let code = u32(i32(clamp(round(value * inverse), -127.0, 127.0))) & 0xffu;
  let j = subgroup_invocation & 15u;
  let first = subgroup_invocation - j;
  let i = 3u * min(j, 5u);
  let codes = subgroupShuffle(code, first + i) | (subgroupShuffle(code, first + min(i + 1u, 15u)) << 8u) |
              (subgroupShuffle(code, first + min(i + 2u, 15u)) << 16u);
  return select(codes, value_of(select(largest / 127.0, sum, j == kSquaresWord)), j >= kScaleWord);
}
