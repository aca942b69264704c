// Weights stored as tile_q5 (base/dtype.h): the fragment contract of linear/weights/README.md.
//!import linear/weights/weight_bytes
//!import linear/weights/tile_at

struct Words {
  q: vec4<u32>,
  s: u32,
  fifth: u32,
}

struct Bytes {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: vec2<f32>,  // scale, minimum
}

fn load_words_from(first: vec2<u32>, row: u32, u: u32) -> Words {
  let at = first.y + plane_at(row, u, 0u, 2u);
  return Words(weights[first.x + plane_at(row, u, 0u, 1u)], scales[at], scales[at + 32u]);
}

fn bytes_of(w: Words) -> Bytes {
  let fifth = vec4<u32>(w.fifth);
  let low = (w.q & vec4<u32>(0x0f0f0f0fu)) | ((fifth << vec4<u32>(4u, 3u, 2u, 1u)) & vec4<u32>(0x10101010u));
  let high = ((w.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) |
             ((fifth >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(0x10101010u));
  return Bytes(low, high, unpack2x16float(w.s));
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let w = bytes_of(load_words(row, i >> 2u));
  let half = select(w.first, w.second, (i & 2u) == 2u);
  let words = select(half.xy, half.zw, (i & 1u) == 1u);
  return mat2x4<f32>(vec4<f32>(unpack4xU8(words.x)) * w.scale.x - w.scale.y,
                     vec4<f32>(unpack4xU8(words.y)) * w.scale.x - w.scale.y);
}

fn words_dot(words: Words, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let w = bytes_of(words);
  return w.scale.x * (dot_u8(w.first, xa) + dot_u8(w.second, xb)) - w.scale.y * (sums.x + sums.y);
}
