// A tile_q6 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_tile_q6
//!import linear/weights/tile_dot

fn words_dot_q8(words: Words, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let w = bytes_of(words);
  return w.scale.x * da.x * f32(idot16(w.first, xa)) + w.scale.y * db.x * f32(idot16(w.second, xb));
}

const HAS_MINIMUM = false;
const ONE_SCALE = false;

fn unit_bytes(words: Words) -> UnitBytes {
  let w = bytes_of(words);
  return UnitBytes(w.first, w.second, w.scale, 0.0);
}

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  let w = bytes_of(load_words(row, g >> 1u));
  return select(w.first, w.second, (g & 1u) == 1u);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  let s = 0.25 * unpack2x16float(scales[plane_at(row, g >> 1u, 0u, 3u)]);
  return vec2<f32>(select(s.x, s.y, (g & 1u) == 1u), 0.0);
}
