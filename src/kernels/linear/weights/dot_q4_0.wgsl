// A q4_0 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_q4_0
//!import linear/weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let q = weights[row * params.row_vec4s + u];
  let low = da.x * f32(idot16(q & vec4<u32>(0x0f0f0f0fu), xa));
  let high = db.x * f32(idot16((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb));
  return scale_at(row * params.units + u) * (low + high - 8.0 * (da.y + db.y));  // weights are q - 8
}

const HAS_MINIMUM = true;

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  return (weights[row * params.row_vec4s + (g >> 1u)] >> vec4<u32>(4u * (g & 1u))) & vec4<u32>(0x0f0f0f0fu);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  let d = scale_at(row * params.units + (g >> 1u));
  return vec2<f32>(d, 8.0 * d);
}
