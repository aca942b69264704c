// Weights stored as f32 (base/dtype.h): the fragment contract of linear/weights/README.md.
//!import linear/weights/weight_bytes

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let at = row * params.row_vec4s + 2u * i;
  // A row may end after four numbers; the caller ignores the others, which need only be finite.
  let last = row * params.row_vec4s + params.row_vec4s - 1u;
  return mat2x4<f32>(bitcast<vec4<f32>>(weights[at]), bitcast<vec4<f32>>(weights[min(at + 1u, last)]));
}

fn unit_first16(u: u32) -> u32 { return 2u * u; }
fn unit_second16(u: u32) -> u32 { return 2u * u + 1u; }

fn numbers16(at: u32) -> mat4x4<f32> {
  return mat4x4<f32>(bitcast<vec4<f32>>(weights[at]), bitcast<vec4<f32>>(weights[at + 1u]),
                     bitcast<vec4<f32>>(weights[at + 2u]), bitcast<vec4<f32>>(weights[at + 3u]));
}

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let at = row * params.row_vec4s + 8u * u;
  return dot16(numbers16(at), xa) + dot16(numbers16(at + 4u), xb);
}
