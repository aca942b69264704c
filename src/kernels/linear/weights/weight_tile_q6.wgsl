// Weights stored as tile_q6 (base/dtype.h): the fragment contract of linear/weights/README.md.
// A weight is kept as the signed byte 4 * (q - 32), which costs no subtraction: (q << 2) ^ 0x80.
//!import linear/weights/weight_bytes
//!import linear/weights/tile_at

struct Words {
  q: vec4<u32>,
  s: u32,
  low_pairs: u32,
  high_pairs: u32,
}

struct Bytes {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: vec2<f32>,  // of the two runs, a quarter of what is stored
}

fn load_words_from(first: vec2<u32>, row: u32, u: u32) -> Words {
  let at = first.y + plane_at(row, u, 0u, 3u);
  return Words(weights[first.x + plane_at(row, u, 0u, 1u)], scales[at], scales[at + 32u], scales[at + 64u]);
}

fn bytes_of(w: Words) -> Bytes {
  let pairs = vec4<u32>(6u, 4u, 2u, 0u);
  let low = ((w.q << vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) |
            ((vec4<u32>(w.low_pairs) << pairs) & vec4<u32>(0xc0c0c0c0u));
  let high = ((w.q >> vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) |
             ((vec4<u32>(w.high_pairs) << pairs) & vec4<u32>(0xc0c0c0c0u));
  return Bytes(low ^ vec4<u32>(0x80808080u), high ^ vec4<u32>(0x80808080u), 0.25 * unpack2x16float(w.s));
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let w = bytes_of(load_words(row, i >> 2u));
  let is_second = (i & 2u) == 2u;
  let half = select(w.first, w.second, is_second);
  let words = select(half.xy, half.zw, (i & 1u) == 1u);
  let d = select(w.scale.x, w.scale.y, is_second);
  return mat2x4<f32>(vec4<f32>(unpack4xI8(words.x)) * d, vec4<f32>(unpack4xI8(words.y)) * d);
}

fn words_dot(words: Words, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let w = bytes_of(words);
  return w.scale.x * dot_i8(w.first, xa) + w.scale.y * dot_i8(w.second, xb);
}
