// The contract of unit_dot_q8 (weights/README.md) for every tile format, by way of words_dot_q8().
//!import weights/dot_bytes

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  return words_dot_q8(load_words(row, u), xa, xb, da, db);
}
