// A tile_q5 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_tile_q5
//!import linear/weights/tile_dot

fn words_dot_q8(words: Words, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let w = bytes_of(words);
  let products = da.x * f32(idot16(w.first, xa)) + db.x * f32(idot16(w.second, xb));
  return w.scale.x * products - w.scale.y * (da.y + db.y);
}

const HAS_MINIMUM = true;
const ONE_SCALE = true;

fn unit_bytes(words: Words) -> UnitBytes {
  let w = bytes_of(words);
  return UnitBytes(w.first, w.second, w.scale.xx, w.scale.y);
}

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  let w = bytes_of(load_words(row, g >> 1u));
  return select(w.first, w.second, (g & 1u) == 1u);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> { return unpack2x16float(scales[plane_at(row, g >> 1u, 0u, 2u)]); }
