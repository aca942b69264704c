// iq4_nl: f16 d, 16 bytes of nibbles that name levels; w = d*level.
//!import linear/repack/repack_bytes

// The 16 levels of the format (formats/quant/tables.cpp) as int8: -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89
// 113.
fn level(place: u32) -> u32 {
  let levels = vec4<u32>(0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
  return (levels[place >> 2u] >> (8u * (place & 3u))) & 0xFFu;
}
fn levels_of(nibbles: u32) -> u32 {
  return level(nibbles & 15u) | (level((nibbles >> 8u) & 15u) << 8u) | (level((nibbles >> 16u) & 15u) << 16u) |
         (level(nibbles >> 24u) << 24u);
}
fn all_levels(nibbles: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(levels_of(nibbles.x), levels_of(nibbles.y), levels_of(nibbles.z), levels_of(nibbles.w));
}

fn read_unit(row_at: u32, u: u32) -> Unit {
  let at = row_at + 18u * u;
  let nibbles = words_at(at + 2u);
  return Unit(all_levels(low_nibbles(nibbles)), all_levels(high_nibbles(nibbles)), half_at(at));
}
