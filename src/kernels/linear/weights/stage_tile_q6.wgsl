// Units of tile_q6 for the matrix-unit products: the contract is in stage_tile_q4.
//!import linear/weights/stage_pair

struct StageUnit {
  q: vec4<u32>,
  first: u32,   // the high bits of columns 0 to 15
  second: u32,  // of 16 to 31
  scale: u32,
}

fn fetch_at(place: UnitPlace) -> StageUnit {
  let at = unit_at(place, 0u, 3u);
  return StageUnit(weights[unit_at(place, 0u, 1u)], scales[at + 32u], scales[at + 64u], scales[at]);
}

fn stage_eight(unit: StageUnit, i: u32, at: u32, step: u32) {
  let both = bitcast<vec2<f16>>(unit.scale);
  let is_second = i >= 2u;
  let q = select(unit.q.xy, unit.q.zw, (i & 1u) == 1u) >> vec2<u32>(4u * (i >> 1u));
  let pairs = vec2<u32>(select(unit.first, unit.second, is_second)) << (vec2<u32>(6u, 4u) - 4u * (i & 1u));
  let bytes = (q & vec2<u32>(0x0f0f0f0fu)) | ((pairs & vec2<u32>(0xc0c0c0c0u)) >> vec2<u32>(2u));
  put_bytes(at, step, bytes.x, bytes.y, vec2<f16>(32.0h), select(both.xx, both.yy, is_second));
}
