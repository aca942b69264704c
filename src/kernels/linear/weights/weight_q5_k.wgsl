// Weights stored as q5_k (base/dtype.h): the fragment contract of linear/weights/README.md. A block of 256 is 11 vec4:
// the header, 32 bytes of fifth bits (bit s of byte j: weight j of sub-block s), then 16 bytes a unit as in q4_k.
//!import linear/weights/weight_bytes
//!import linear/weights/weight_k_scales

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let at = row * params.row_vec4s + 11u * (i >> 5u);
  let sub = (i >> 2u) & 7u;
  let half = (i >> 1u) & 1u;
  let q = weights[at + 3u + 2u * (sub >> 1u) + half];
  let h = weights[at + 1u + half];
  let odd = (i & 1u) == 1u;
  let low = (select(q.xy, q.zw, odd) >> vec2<u32>(4u * (sub & 1u))) & vec2<u32>(0x0f0f0f0fu);
  let fifth = (select(h.xy, h.zw, odd) >> vec2<u32>(sub)) & vec2<u32>(0x01010101u);
  let words = low | (fifth << vec2<u32>(4u));
  let s = pair_scales(weights[at], sub >> 1u);
  let d = select(s.scale.x, s.scale.y, (sub & 1u) == 1u);
  let m = select(s.minimum.x, s.minimum.y, (sub & 1u) == 1u);
  return mat2x4<f32>(vec4<f32>(unpack4xU8(words.x)) * d - m, vec4<f32>(unpack4xU8(words.y)) * d - m);
}

fn unit_first16(u: u32) -> u32 { return 2u * u - (u & 1u); }
fn unit_second16(u: u32) -> u32 { return 2u * u - (u & 1u) + 2u; }

struct UnitQ5K {
  first: vec4<u32>,
  second: vec4<u32>,
  scales: PairScales,
}

fn load_unit(row: u32, u: u32) -> UnitQ5K {
  let at = row * params.row_vec4s + 11u * (u >> 3u);
  let q = weights[at + 3u + (u & 7u)];
  let fifth = weights[at + 1u + (u & 1u)] >> vec4<u32>(u & 6u);
  let low = (q & vec4<u32>(0x0f0f0f0fu)) | ((fifth << vec4<u32>(4u)) & vec4<u32>(0x10101010u));
  let high = ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | ((fifth << vec4<u32>(3u)) & vec4<u32>(0x10101010u));
  return UnitQ5K(low, high, pair_scales(weights[at], (u & 7u) >> 1u));
}

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let w = load_unit(row, u);
  return dot(w.scales.scale, vec2<f32>(dot_u8(w.first, xa), dot_u8(w.second, xb))) - dot(w.scales.minimum, sums);
}
