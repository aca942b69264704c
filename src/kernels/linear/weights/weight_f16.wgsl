// Weights stored as f16 (base/dtype.h), read without the f16 feature: the fragment contract of
// linear/weights/README.md.
//!import linear/weights/weight_bytes

fn four_numbers(low: u32, high: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let q = weights[row * params.row_vec4s + i];
  return mat2x4<f32>(four_numbers(q.x, q.y), four_numbers(q.z, q.w));
}

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }

fn numbers16(at: u32) -> mat4x4<f32> {
  let p = weights[at];
  let q = weights[at + 1u];
  return mat4x4<f32>(four_numbers(p.x, p.y), four_numbers(p.z, p.w), four_numbers(q.x, q.y),
                     four_numbers(q.z, q.w));
}

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 4u * u;
  return dot16(numbers16(at), xa) + dot16(numbers16(at + 2u), xb);
}
