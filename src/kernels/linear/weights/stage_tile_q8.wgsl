// Units of tile_q8 for the matrix-unit products: the contract is in stage_tile_q4. Signed bytes count from 128 here.
//!import linear/weights/stage_pair

struct StageUnit {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: u32,
}

fn fetch_at(place: UnitPlace) -> StageUnit {
  let at = unit_at(place, 0u, 2u);
  return StageUnit(weights[at], weights[at + 32u], scales[unit_at(place, 0u, 1u)]);
}

fn stage_eight(unit: StageUnit, i: u32, at: u32, step: u32) {
  let run = select(unit.first, unit.second, i >= 2u);
  let bytes = select(run.xy, run.zw, (i & 1u) == 1u) ^ vec2<u32>(0x80808080u);
  put_bytes(at, step, bytes.x, bytes.y, vec2<f16>(128.0h), bitcast<vec2<f16>>(unit.scale).xx);
}
