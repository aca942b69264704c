// Weights stored as q8_0 (base/dtype.h): the fragment contract of linear/weights/README.md. A unit is one block.
//!import linear/weights/weight_bytes

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let q = weights[row * params.row_vec4s + (i >> 1u)];
  let words = select(q.xy, q.zw, (i & 1u) == 1u);
  let d = scale_at(row * params.units + (i >> 2u));
  return mat2x4<f32>(vec4<f32>(unpack4xI8(words.x)) * d, vec4<f32>(unpack4xI8(words.y)) * d);
}

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 2u * u;
  return scale_at(row * params.units + u) * (dot_i8(weights[at], xa) + dot_i8(weights[at + 1u], xb));
}
