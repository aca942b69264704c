// A tile_q8 unit times activations quantised to 8 bits: see linear/weights/README.md for the contract of unit_dot_q8.
//!import linear/weights/weight_tile_q8
//!import linear/weights/tile_dot

fn words_dot_q8(w: Words, xa: vec4<u32>, xb: vec4<u32>, da: vec2<f32>, db: vec2<f32>) -> f32 {
  return unpack2x16float(w.s).x * (da.x * f32(idot16(w.first, xa)) + db.x * f32(idot16(w.second, xb)));
}

const HAS_MINIMUM = false;
const ONE_SCALE = true;

fn unit_bytes(w: Words) -> UnitBytes {
  return UnitBytes(w.first, w.second, unpack2x16float(w.s).xx, 0.0);
}

fn bytes16(row: u32, g: u32) -> vec4<u32> { return weights[plane_at(row, g >> 1u, g & 1u, 2u)]; }

fn scale_minimum(row: u32, g: u32) -> vec2<f32> {
  return vec2<f32>(unpack2x16float(scales[plane_at(row, g >> 1u, 0u, 1u)]).x, 0.0);
}
