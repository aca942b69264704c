// A tile_q4 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_tile_q4
//!import linear/weights/tile_dot

fn words_dot_q8(w: Words, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  let s = unpack2x16float(w.s);
  let low = da.x * f32(idot16(w.q & vec4<u32>(0x0f0f0f0fu), xa));
  let high = db.x * f32(idot16((w.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), xb));
  return s.x * (low + high) - s.y * (da.y + db.y);
}

const HAS_MINIMUM = true;
const ONE_SCALE = true;

fn unit_bytes(w: Words) -> UnitBytes {
  let s = unpack2x16float(w.s);
  return UnitBytes(w.q & vec4<u32>(0x0f0f0f0fu), (w.q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu), s.xx, s.y);
}

fn bytes16(row: u32, g: u32) -> vec4<u32> {
  return (weights[plane_at(row, g >> 1u, 0u, 1u)] >> vec4<u32>(4u * (g & 1u))) & vec4<u32>(0x0f0f0f0fu);
}

fn scale_minimum(row: u32, g: u32) -> vec2<f32> { return unpack2x16float(scales[plane_at(row, g >> 1u, 0u, 1u)]); }
