// A q6_k unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_q6_k
//!import linear/weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let w = load_unit(row, u);
  return w.scale.x * da.x * f32(idot16(w.first, xa)) + w.scale.y * db.x * f32(idot16(w.second, xb));
}

const HAS_MINIMUM = false;

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  let at = row * params.row_vec4s + 13u * (g >> 4u);
  let half = (g >> 3u) & 1u;
  let quarter = (g >> 1u) & 3u;
  let q = weights[at + 4u * half + 2u * (quarter & 1u) + (g & 1u)] >> vec4<u32>(2u * (quarter & 2u));
  let h = weights[at + 8u + 2u * half + (g & 1u)] >> vec4<u32>(2u * quarter);
  let low = (q & vec4<u32>(0x0f0f0f0fu)) << vec4<u32>(2u);
  return (low | ((h & vec4<u32>(0x03030303u)) << vec4<u32>(6u))) ^ vec4<u32>(0x80808080u);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  let at = row * params.row_vec4s + 13u * (g >> 4u) + 12u;
  let group = g & 15u;
  let scale = extractBits(bitcast<i32>(weights[at][group >> 2u]), 8u * (group & 3u), 8u);
  return vec2<f32>(0.25 * scale_at(row * (params.units >> 3u) + (g >> 4u)) * f32(scale), 0.0);
}
