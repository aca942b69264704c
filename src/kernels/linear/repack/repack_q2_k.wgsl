// q2_k: 256 weights in 84 bytes: scales[16] (low nibble scale, high nibble minimum), pairs of bits[64], f16 d and dmin;
// w = d*scale*q - dmin*minimum as f16. Both products are exact in f32, so a fused multiply-subtract changes nothing.
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

struct Group {
  d: u32,  // f16
  dmin: u32,
  scale: f32,
  minimum: f32,
}

fn weight_of(group: Group, q: u32) -> u32 {
  let d_sign = group.d & 0x8000u;
  let dmin_sign = group.dmin & 0x8000u;
  let product = half_magnitude(group.d) * group.scale * f32(q);
  let shift = half_magnitude(group.dmin) * group.minimum;
  if (product == 0.0 && shift == 0.0) { return select(0u, d_sign, dmin_sign == 0u); }
  let value = select(product, -product, d_sign != 0u) - select(shift, -shift, dmin_sign != 0u);
  return f16_bits(abs(value)) | select(0u, 0x8000u, value < 0.0);
}

fn read_eight(row_at: u32, eight: u32) -> vec4<u32> {
  let block = row_at + 84u * (eight >> 5u);
  let first = 8u * (eight & 31u);  // weight in the block
  let scales = byte_at(block + (first >> 4u));
  let d = word_at(block + 80u);
  let group = Group(d & 0xFFFFu, d >> 16u, f32(scales & 15u), f32(scales >> 4u));
  let bytes = block + 16u + 32u * (first >> 7u) + (first & 31u);
  let shift = vec2<u32>(2u * ((first >> 5u) & 3u));
  let codes = (vec2<u32>(word_at(bytes), word_at(bytes + 4u)) >> shift) & vec2<u32>(0x03030303u);
  var out: array<u32, 4>;
  for (var i = 0u; i < 4u; i++) {
    let pair = codes[i >> 1u] >> (16u * (i & 1u));
    out[i] = weight_of(group, pair & 3u) | (weight_of(group, (pair >> 8u) & 3u) << 16u);
  }
  return vec4<u32>(out[0], out[1], out[2], out[3]);
}
