// Writes a unit of tile_q5. at0, at1: the unit's number in plane 0 and plane 1; r: the row of its tile.
//!import linear/repack/repack_bytes

fn store_unit(unit: Unit, at0: u32, at1: u32, r: u32) {
  plane0[at0 * 32u + r] = low_nibbles(unit.first) | (low_nibbles(unit.second) << vec4<u32>(4u));
  plane1[at1 * 64u + r] = unit.halves;
  let places = vec4<u32>(0u, 1u, 2u, 3u);  // word j of a half: bit j of its four bytes
  let bits = (high_nibbles(unit.first) << places) | (high_nibbles(unit.second) << (places + vec4<u32>(4u)));
  plane1[at1 * 64u + 32u + r] = bits.x | bits.y | bits.z | bits.w;
}
