// Weights stored as q6_k (base/dtype.h): the fragment contract of linear/weights/README.md. A block of 256 is 13 vec4:
// 8 of low nibbles, 4 of upper pairs of bits, 1 of sixteen int8 scales, one per 16 weights. Unit t of a block reads low
// nibble vec4 t: its low nibbles are 16 weights, its high nibbles 16 weights 64 further on. A weight is kept as the
// signed byte 4 * (q - 32), which costs no subtraction: (q << 2) ^ 0x80.
//!import linear/weights/weight_bytes

fn weight8(row: u32, i: u32) -> mat2x4<f32> {
  let block = row * (params.units >> 3u) + (i >> 5u);
  let at = row * params.row_vec4s + 13u * (i >> 5u);
  let r = i & 31u;                // which 8 of the block
  let quarter = (r >> 2u) & 3u;   // which 32 of its half
  let part = (r >> 1u) & 1u;      // which 16 of that quarter
  let q = weights[at + 4u * (r >> 4u) + 2u * (quarter & 1u) + part];
  let h = weights[at + 8u + 2u * (r >> 4u) + part];
  let odd = (i & 1u) == 1u;
  let low = (select(q.xy, q.zw, odd) >> vec2<u32>(2u * (quarter & 2u))) & vec2<u32>(0x0f0f0f0fu);
  let high = (select(h.xy, h.zw, odd) >> vec2<u32>(2u * quarter)) & vec2<u32>(0x03030303u);
  let words = ((low << vec2<u32>(2u)) | (high << vec2<u32>(6u))) ^ vec2<u32>(0x80808080u);
  let group = r >> 1u;
  let four = weights[at + 12u][group >> 2u];
  let d = 0.25 * scale_at(block) * f32(extractBits(bitcast<i32>(four), 8u * (group & 3u), 8u));
  return mat2x4<f32>(vec4<f32>(unpack4xI8(words.x)) * d, vec4<f32>(unpack4xI8(words.y)) * d);
}

fn unit_first16(u: u32) -> u32 { return 16u * (u >> 3u) + 2u * (u & 4u) + (u & 3u); }
fn unit_second16(u: u32) -> u32 { return 16u * (u >> 3u) + 2u * (u & 4u) + (u & 3u) + 4u; }

struct UnitQ6K {
  first: vec4<u32>,
  second: vec4<u32>,
  scale: vec2<f32>,
}

fn load_unit(row: u32, u: u32) -> UnitQ6K {
  let at = row * params.row_vec4s + 13u * (u >> 3u);
  let t = u & 7u;
  let q = weights[at + t];
  let h = weights[at + 8u + 2u * (t >> 2u) + (t & 1u)] >> vec4<u32>(t & 2u);
  let low = ((q << vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | ((h << vec4<u32>(6u)) & vec4<u32>(0xc0c0c0c0u));
  let high = ((q >> vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | ((h << vec4<u32>(2u)) & vec4<u32>(0xc0c0c0c0u));
  // Scales of the 16-groups 8 * (t / 4) + t % 4 and 4 more: byte t % 4 of two neighbouring words.
  let s = weights[at + 12u];
  let two = select(s.xy, s.zw, t >= 4u) >> vec2<u32>(8u * (t & 3u));
  let scale = vec2<f32>(extractBits(bitcast<vec2<i32>>(two), 0u, 8u));
  let d = 0.25 * scale_at(row * (params.units >> 3u) + (u >> 3u));
  return UnitQ6K(low ^ vec4<u32>(0x80808080u), high ^ vec4<u32>(0x80808080u), d * scale);
}

fn unit_dot(row: u32, u: u32, xa: mat4x4<f32>, xb: mat4x4<f32>, sums: vec2<f32>) -> f32 {
  let w = load_unit(row, u);
  return dot(w.scale, vec2<f32>(dot_i8(w.first, xa), dot_i8(w.second, xb)));
}
