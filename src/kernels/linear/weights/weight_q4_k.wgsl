// Weights stored as q4_k (base/dtype.h): the fragment contract of linear/weights/README.md. A block of 256 is 9 vec4:
// the header, then 16 bytes a unit: their low nibbles are 16 weights of one sub-block of 32, the high nibbles 16 of the
// next one.
//!import linear/weights/weight_bytes
//!import linear/weights/weight_k_scales

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let at = row * params.row_vec4s + 9u * (i >> 5u);
  let sub = (i >> 2u) & 7u;
  let q = weights[at + 1u + 2u * (sub >> 1u) + ((i >> 1u) & 1u)];
  let words = (select(q.xy, q.zw, (i & 1u) == 1u) >> vec2<u32>(4u * (sub & 1u))) & vec2<u32>(0x0f0f0f0fu);
  let s = pair_scales(weights[at], sub >> 1u);
  let d = select(s.scale.x, s.scale.y, (sub & 1u) == 1u);
  let m = select(s.minimum.x, s.minimum.y, (sub & 1u) == 1u);
  return mat2x4<f32>(vec4<f32>(unpack4xU8(words.x)) * d - m, vec4<f32>(unpack4xU8(words.y)) * d - m);
}

fn unit_first16(u: u32) -> u32 { return 2u * u - (u & 1u); }
fn unit_second16(u: u32) -> u32 { return 2u * u - (u & 1u) + 2u; }

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 9u * (u >> 3u);
  let q = weights[at + 1u + (u & 7u)];
  let s = pair_scales(weights[at], (u & 7u) >> 1u);
  let low = dot_u8(q & vec4<u32>(0x0f0f0f0fu), xa);
  let high = dot_u8((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb);
  return dot(s.scale, vec2<f32>(low, high)) - dot(s.minimum, sums);
}
