// Units of tile_q8 for the matrix-unit products: the contract is in stage_tile_q4. Signed bytes count from 128 here.
//!import linear/weights/stage_pair

struct StageUnit {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: u32,
}

fn fetch_unit(row: u32, u: u32) -> StageUnit {
  let at = unit_at(row, u, 0u, 2u);
  return StageUnit(weights[at], weights[at + 32u], scales[unit_at(row, u, 0u, 1u)]);
}

fn stage_unit(unit: StageUnit, at: u32) {
  let scale = bitcast<vec2<f16>>(unit.scale).xx;
  let low = unit.first ^ vec4<u32>(0x80808080u);
  let high = unit.second ^ vec4<u32>(0x80808080u);
  let offset = vec2<f16>(128.0h);
  put_bytes(at, low.x, low.y, offset, scale);
  put_bytes(at + 8u, low.z, low.w, offset, scale);
  put_bytes(at + 16u, high.x, high.y, offset, scale);
  put_bytes(at + 24u, high.z, high.w, offset, scale);
}
