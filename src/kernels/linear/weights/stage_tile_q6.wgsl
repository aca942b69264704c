// Units of tile_q6 for the matrix-unit products: the contract is in stage_tile_q4.
//!import linear/weights/stage_pair

struct StageUnit {
  q: vec4<u32>,
  first: u32,   // the high bits of columns 0 to 15
  second: u32,  // of 16 to 31
  scale: u32,
}

fn fetch_unit(row: u32, u: u32) -> StageUnit {
  let at = unit_at(row, u, 0u, 3u);
  return StageUnit(weights[unit_at(row, u, 0u, 1u)], scales[at + 32u], scales[at + 64u], scales[at]);
}

fn stage_unit(unit: StageUnit, at: u32) {
  let both = bitcast<vec2<f16>>(unit.scale);
  let first = vec4<u32>(unit.first) << vec4<u32>(6u, 4u, 2u, 0u);
  let second = vec4<u32>(unit.second) << vec4<u32>(6u, 4u, 2u, 0u);
  let low = (unit.q & vec4<u32>(0x0f0f0f0fu)) | ((first & vec4<u32>(0xc0c0c0c0u)) >> vec4<u32>(2u));
  let high = ((unit.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((second & vec4<u32>(0xc0c0c0c0u)) >> vec4<u32>(2u));
  let offset = vec2<f16>(32.0h);
  put_bytes(at, low.x, low.y, offset, both.xx);
  put_bytes(at + 8u, low.z, low.w, offset, both.xx);
  put_bytes(at + 16u, high.x, high.y, offset, both.yy);
  put_bytes(at + 24u, high.z, high.w, offset, both.yy);
}
