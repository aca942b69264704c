// A q8_0 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_q8_0
//!import linear/weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 2u * u;
  let products = da.x * f32(idot16(weights[at], xa)) + db.x * f32(idot16(weights[at + 1u], xb));
  return scale_at(row * params.units + u) * products;
}

const HAS_MINIMUM = false;

fn bytes16(row: u32, g: u32) -> vec4<u32> { return weights[row * params.row_vec4s + g]; }

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  return vec2<f32>(scale_at(row * params.units + (g >> 1u)), 0.0);
}
