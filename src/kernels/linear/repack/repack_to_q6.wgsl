// Writes a unit of tile_q6. at0, at1: the unit's number in plane 0 and plane 1; r: the row of its tile.
//!import linear/repack/repack_bytes

// Word j of a half: bits 2j and 2j + 1 of its four bytes.
fn bit_pairs(codes: vec4<u32>) -> u32 {
  let bits = high_nibbles(codes) << vec4<u32>(0u, 2u, 4u, 6u);
  return bits.x | bits.y | bits.z | bits.w;
}

fn store_unit(unit: Unit, at0: u32, at1: u32, r: u32) {
  plane0[at0 * 32u + r] = low_nibbles(unit.first) | (low_nibbles(unit.second) << vec4<u32>(4u));
  plane1[at1 * 96u + r] = unit.halves;
  plane1[at1 * 96u + 32u + r] = bit_pairs(unit.first);
  plane1[at1 * 96u + 64u + r] = bit_pairs(unit.second);
}
