// Weights stored as tile_q4 (base/dtype.h): the fragment contract of linear/weights/README.md.
//!import linear/weights/weight_bytes
//!import linear/weights/tile_at

struct Words {
  q: vec4<u32>,
  s: u32,
}

fn load_words_from(first: vec2<u32>, row: u32, u: u32) -> Words {
  let at = plane_at(row, u, 0u, 1u);
  return Words(weights[first.x + at], scales[first.y + at]);
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let w = load_words(row, i >> 2u);
  let words = (select(w.q.xy, w.q.zw, (i & 1u) == 1u) >> vec2<u32>(2u * (i & 2u))) & vec2<u32>(0x0f0f0f0fu);
  let s = unpack2x16float(w.s);
  return mat2x4<f32>(vec4<f32>(unpack4xU8(words.x)) * s.x - s.y, vec4<f32>(unpack4xU8(words.y)) * s.x - s.y);
}

fn words_dot(w: Words, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let s = unpack2x16float(w.s);
  let low = dot_u8(w.q & vec4<u32>(0x0f0f0f0fu), xa);
  let high = dot_u8((w.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb);
  return s.x * (low + high) - s.y * (sums.x + sums.y);
}
