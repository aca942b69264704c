// Weights stored as tile_f16 (base/dtype.h), read without the f16 feature: the fragment contract of
// linear/weights/README.md.
//!import linear/weights/weight_bytes
//!import linear/weights/tile_at

fn four_numbers(low: u32, high: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(low), unpack2x16float(high));
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let q = weights[plane_at(row, i >> 2u, i & 3u, 4u)];
  return mat2x4<f32>(four_numbers(q.x, q.y), four_numbers(q.z, q.w));
}

struct Words {
  a: vec4<u32>,
  b: vec4<u32>,
  c: vec4<u32>,
  d: vec4<u32>,
}

fn load_words_from(first: vec2<u32>, row: u32, u: u32) -> Words {
  let at = first.x + plane_at(row, u, 0u, 4u);
  return Words(weights[at], weights[at + 32u], weights[at + 64u], weights[at + 96u]);
}

fn numbers16(p: vec4<u32>, q: vec4<u32>) -> mat4x4<f32> {
  return mat4x4<f32>(four_numbers(p.x, p.y), four_numbers(p.z, p.w), four_numbers(q.x, q.y),
                     four_numbers(q.z, q.w));
}

fn words_dot(w: Words, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  return dot16(numbers16(w.a, w.b), xa) + dot16(numbers16(w.c, w.d), xb);
}
