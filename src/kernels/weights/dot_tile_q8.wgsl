// A tile_q8 unit times activations quantised to 8 bits: see weights/README.md for the contract of unit_dot_q8.
//!import weights/weight_tile_q8
//!import weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let at = plane_at(row, u, 0u, 2u);
  return unit_scale(row, u) * da.x * f32(idot16(weights[at], xa) + idot16(weights[at + 32u], xb));
}

const HAS_MINIMUM = false;

fn bytes16(row: u32, g: u32) -> vec4<u32> { return weights[plane_at(row, g >> 1u, g & 1u, 2u)]; }

fn scale_minimum(row: u32, g: u32) -> vec2<f32> { return vec2<f32>(unit_scale(row, g >> 1u), 0.0); }
