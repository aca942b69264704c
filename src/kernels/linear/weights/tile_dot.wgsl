// The contract of unit_dot_q8 (linear/weights/README.md) for every tile format, by way of words_dot_q8(); and what
// kernels that multiply a unit by several rows of x use: unit_bytes(words) unpacks it once.
//!import linear/weights/dot_bytes

struct UnitBytes {
  first: vec4<u32>,  // signed bytes of the two runs of 16
  second: vec4<u32>,
  scale: vec2<f32>,  // of the runs; ONE_SCALE: both the same
  minimum: f32,  // of both runs, if HAS_MINIMUM
}

fn unit_dot_q8(row: u32, u: u32, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  return words_dot_q8(load_words(row, u), xa, xb, da, db);
}
