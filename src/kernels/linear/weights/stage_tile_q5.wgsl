// Units of tile_q5 for the matrix-unit products: the contract is in stage_tile_q4.
//!import linear/weights/stage_pair

struct StageUnit {
  q: vec4<u32>,
  fifth: u32,
  scale: u32,
}

fn fetch_unit(row: u32, u: u32) -> StageUnit {
  return StageUnit(weights[unit_at(row, u, 0u, 1u)], scales[unit_at(row, u, 1u, 2u)],
                   scales[unit_at(row, u, 0u, 2u)]);
}

fn put_sums(at: u32, early: u32, late: u32, minimum: vec2<f16>, scale: vec2<f16>) {
  put_pair(at, fma(byte_pair(early), scale, -minimum));
  put_pair(at + 2u, fma(byte_pair(early >> 8u), scale, -minimum));
  put_pair(at + 4u, fma(byte_pair(late), scale, -minimum));
  put_pair(at + 6u, fma(byte_pair(late >> 8u), scale, -minimum));
}

fn stage_unit(unit: StageUnit, at: u32) {
  let scale_minimum = bitcast<vec2<f16>>(unit.scale);
  let scale = scale_minimum.xx;
  let minimum = scale_minimum.yy;
  let fifth = vec4<u32>(unit.fifth);
  let low = (unit.q & vec4<u32>(0x0f0f0f0fu)) | ((fifth << vec4<u32>(4u, 3u, 2u, 1u)) & vec4<u32>(0x10101010u));
  let high = ((unit.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) |
             ((fifth >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(0x10101010u));
  put_sums(at, low.x, low.y, minimum, scale);
  put_sums(at + 8u, low.z, low.w, minimum, scale);
  put_sums(at + 16u, high.x, high.y, minimum, scale);
  put_sums(at + 24u, high.z, high.w, minimum, scale);
}
