// Weights stored as tile_q8 (base/dtype.h): the fragment contract of linear/weights/README.md.
//!import linear/weights/weight_bytes
//!import linear/weights/tile_at

struct Words {
  first: vec4<u32>,
  second: vec4<u32>,
  s: u32,
}

fn load_words_from(first: vec2<u32>, row: u32, u: u32) -> Words {
  let at = first.x + plane_at(row, u, 0u, 2u);
  return Words(weights[at], weights[at + 32u], scales[first.y + plane_at(row, u, 0u, 1u)]);
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let q = weights[plane_at(row, i >> 2u, (i >> 1u) & 1u, 2u)];
  let words = select(q.xy, q.zw, (i & 1u) == 1u);
  let d = unpack2x16float(scales[plane_at(row, i >> 2u, 0u, 1u)]).x;
  return mat2x4<f32>(vec4<f32>(unpack4xI8(words.x)) * d, vec4<f32>(unpack4xI8(words.y)) * d);
}

fn words_dot(w: Words, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  return unpack2x16float(w.s).x * (dot_i8(w.first, xa) + dot_i8(w.second, xb));
}
