// Units of tile_bf16 for the matrix-unit products: the contract is in stage_tile_q4.
//!import linear/weights/stage_pair

struct StageUnit {
  a: vec4<u32>,
  b: vec4<u32>,
  c: vec4<u32>,
  d: vec4<u32>,
}

fn fetch_at(place: UnitPlace) -> StageUnit {
  let at = unit_at(place, 0u, 4u);
  return StageUnit(weights[at], weights[at + 32u], weights[at + 64u], weights[at + 96u]);
}

// f16 holds what bf16 does but for numbers below 2^-14, which lose their last bits, and ones beyond its range.
fn pair_of(bits: vec2<u32>) -> vec2<f16> {
  return vec2<f16>(clamp(bitcast<vec2<f32>>(bits), vec2<f32>(-65504.0), vec2<f32>(65504.0)));
}

// Eight numbers, in the order that x has: 0 and 2, 1 and 3, 4 and 6, 5 and 7.
fn put_eight(at: u32, step: u32, e: vec4<u32>) {
  put_pairs(at, pair_of(e.xy << vec2<u32>(16u)), pair_of(e.xy & vec2<u32>(0xffff0000u)));
  put_pairs(at + step, pair_of(e.zw << vec2<u32>(16u)), pair_of(e.zw & vec2<u32>(0xffff0000u)));
}

fn stage_eight(unit: StageUnit, i: u32, at: u32, step: u32) {
  let early = select(unit.a, unit.b, i == 1u);
  let late = select(unit.c, unit.d, i == 3u);
  put_eight(at, step, select(early, late, i >= 2u));
}
