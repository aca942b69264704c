// Weights stored as q4_0 (base/dtype.h): the fragment contract of linear/weights/README.md. A unit is one block: the
// low nibbles are its first 16 weights, the high nibbles the others.
//!import linear/weights/weight_bytes

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let q = weights[row * params.row_vec4s + (i >> 2u)];
  let words = (select(q.xy, q.zw, (i & 1u) == 1u) >> vec2<u32>(2u * (i & 2u))) & vec2<u32>(0x0f0f0f0fu);
  let d = scale_at(row * params.units + (i >> 2u));
  return mat2x4<f32>((vec4<f32>(unpack4xU8(words.x)) - 8.0) * d, (vec4<f32>(unpack4xU8(words.y)) - 8.0) * d);
}

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let q = weights[row * params.row_vec4s + u];
  let low = dot_u8(q & vec4<u32>(0x0f0f0f0fu), xa);
  let high = dot_u8((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb);
  return scale_at(row * params.units + u) * (low + high - 8.0 * (sums.x + sums.y));
}
