// Brings units of tile_q4 (base/dtype.h) into workgroup memory as f16, for the matrix-unit products. The contract of
// every stage_* fragment:
// fetch_unit reads 32 columns of a weight row into registers. stage_eight writes columns 8i to 8i + 7 to w_tile from
// `at` on, four by four, `step` apart. The order is 0, 2, 1, 3, in which bytes come out of a word two at a time (x has
// the same order, common/forms.h). stage_unit (stage_pair) writes all columns, one after the other.
// Bindings of the entry: weights, scales; workgroup: w_tile, an array of vec2<u32>.
//!import linear/weights/stage_pair

struct StageUnit {
  q: vec4<u32>,
  scale: u32,
}

fn fetch_at(place: UnitPlace) -> StageUnit {
  let at = unit_at(place, 0u, 1u);
  return StageUnit(weights[at], scales[at]);
}

fn stage_eight(unit: StageUnit, i: u32, at: u32, step: u32) {
  let scale_minimum = bitcast<vec2<f16>>(unit.scale);
  let scale = scale_minimum.xx;
  let minimum = scale_minimum.yy;
  let shift = 4u * (i >> 1u);
  let early = unit.q[2u * (i & 1u)] >> shift;
  let late = unit.q[2u * (i & 1u) + 1u] >> shift;
  put_pairs(at, fma(small_pair(early), scale, -minimum), fma(small_pair(early >> 8u), scale, -minimum));
  put_pairs(at + step, fma(small_pair(late), scale, -minimum), fma(small_pair(late >> 8u), scale, -minimum));
}
