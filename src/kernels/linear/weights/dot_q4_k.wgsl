// A q4_k unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_q4_k
//!import linear/weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 9u * (u >> 3u);
  let q = weights[at + 1u + (u & 7u)];
  let s = pair_scales(weights[at], (u & 7u) >> 1u);
  let low = da.x * f32(idot16(q & vec4<u32>(0x0f0f0f0fu), xa));
  let high = db.x * f32(idot16((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb));
  return dot(s.scale, vec2<f32>(low, high)) - dot(s.minimum, vec2<f32>(da.y, db.y));
}

const HAS_MINIMUM = true;

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  let at = row * params.row_vec4s + 9u * (g >> 4u);
  let sub = (g >> 1u) & 7u;
  let q = weights[at + 1u + (sub & 6u) + (g & 1u)];
  return (q >> vec4<u32>(4u * (sub & 1u))) & vec4<u32>(0x0f0f0f0fu);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  let sub = (g >> 1u) & 7u;
  let s = pair_scales(weights[row * params.row_vec4s + 9u * (g >> 4u)], sub >> 1u);
  return select(vec2<f32>(s.scale.x, s.minimum.x), vec2<f32>(s.scale.y, s.minimum.y), (sub & 1u) == 1u);
}
