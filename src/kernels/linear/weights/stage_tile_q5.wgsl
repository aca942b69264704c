// Units of tile_q5 for the matrix-unit products: the contract is in stage_tile_q4.
//!import linear/weights/stage_pair

struct StageUnit {
  q: vec4<u32>,
  fifth: u32,
  scale: u32,
}

fn fetch_at(place: UnitPlace) -> StageUnit {
  return StageUnit(weights[unit_at(place, 0u, 1u)], scales[unit_at(place, 1u, 2u)],
                   scales[unit_at(place, 0u, 2u)]);
}

// Columns 16 to 31 have the upper four of the fifth bits.
fn stage_eight(unit: StageUnit, i: u32, at: u32, step: u32) {
  let scale_minimum = bitcast<vec2<f16>>(unit.scale);
  let scale = scale_minimum.xx;
  let minimum = scale_minimum.yy;
  let is_high = i >= 2u;
  let word = 2u * (i & 1u) + vec2<u32>(0u, 1u);
  let q = select(unit.q.xy, unit.q.zw, (i & 1u) == 1u) >> vec2<u32>(4u * (i >> 1u));
  let fifth = select(vec2<u32>(unit.fifth) << (vec2<u32>(4u) - word), vec2<u32>(unit.fifth) >> word, is_high);
  let bytes = (q & vec2<u32>(0x0f0f0f0fu)) | (fifth & vec2<u32>(0x10101010u));
  put_pairs(at, fma(byte_pair(bytes.x), scale, -minimum), fma(byte_pair(bytes.x >> 8u), scale, -minimum));
  put_pairs(at + step, fma(byte_pair(bytes.y), scale, -minimum), fma(byte_pair(bytes.y >> 8u), scale, -minimum));
}
