// Writes a unit of tile_q4. at0, at1: the unit's number in plane 0 and plane 1; r: the row of its tile.
//!import linear/repack/repack_bytes

fn store_unit(unit: Unit, at0: u32, at1: u32, r: u32) {
  plane0[at0 * 32u + r] = low_nibbles(unit.first) | (low_nibbles(unit.second) << vec4<u32>(4u));
  plane1[at1 * 32u + r] = unit.halves;
}
