// Weights stored as tile_q6 (base/dtype.h): the fragment contract of weights/README.md.
// A weight is kept as the signed byte 4 * (q - 32), which costs no subtraction: (q << 2) ^ 0x80.
//!import weights/weight_bytes
//!import weights/tile_at

struct UnitTileQ6 {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: vec2<f32>,  // of the two runs, a quarter of what is stored
}

fn load_unit(row: u32, u: u32) -> UnitTileQ6 {
  let q = weights[plane_at(row, u, 0u, 1u)];
  let at = plane_at(row, u, 0u, 3u);
  let s = unpack2x16float(scales[at]);
  let low_pairs = vec4<u32>(scales[at + 32u]) << vec4<u32>(6u, 4u, 2u, 0u);
  let high_pairs = vec4<u32>(scales[at + 64u]) << vec4<u32>(6u, 4u, 2u, 0u);
  let low = ((q << vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | (low_pairs & vec4<u32>(0xc0c0c0c0u));
  let high = ((q >> vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | (high_pairs & vec4<u32>(0xc0c0c0c0u));
  return UnitTileQ6(low ^ vec4<u32>(0x80808080u), high ^ vec4<u32>(0x80808080u), 0.25 * s);
}

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let w = load_unit(row, i >> 2u);
  let is_second = (i & 2u) == 2u;
  let half = select(w.first, w.second, is_second);
  let words = select(half.xy, half.zw, (i & 1u) == 1u);
  let d = select(w.scale.x, w.scale.y, is_second);
  return mat2x4<f32>(vec4<f32>(unpack4xI8(words.x)) * d, vec4<f32>(unpack4xI8(words.y)) * d);
}

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let w = load_unit(row, u);
  return w.scale.x * dot_i8(w.first, xa) + w.scale.y * dot_i8(w.second, xb);
}
