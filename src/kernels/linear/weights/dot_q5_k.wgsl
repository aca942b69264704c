// A q5_k unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_q5_k
//!import linear/weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let w = load_unit(row, u);
  let low = da.x * f32(idot16(w.first, xa));
  let high = db.x * f32(idot16(w.second, xb));
  return dot(w.scales.scale, vec2<f32>(low, high)) - dot(w.scales.minimum, vec2<f32>(da.y, db.y));
}

const HAS_MINIMUM = true;

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  let at = row * params.row_vec4s + 11u * (g >> 4u);
  let sub = (g >> 1u) & 7u;
  let q = weights[at + 3u + (sub & 6u) + (g & 1u)];
  let fifth = (weights[at + 1u + (g & 1u)] >> vec4<u32>(sub)) & vec4<u32>(0x01010101u);
  return ((q >> vec4<u32>(4u * (sub & 1u))) & vec4<u32>(0x0f0f0f0fu)) | (fifth << vec4<u32>(4u));
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  let sub = (g >> 1u) & 7u;
  let s = pair_scales(weights[row * params.row_vec4s + 11u * (g >> 4u)], sub >> 1u);
  return select(vec2<f32>(s.scale.x, s.minimum.x), vec2<f32>(s.scale.y, s.minimum.y), (sub & 1u) == 1u);
}
