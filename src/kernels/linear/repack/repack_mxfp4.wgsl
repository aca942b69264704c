// mxfp4: u8 exponent e, 16 bytes of nibbles; w = 2^(e-128) * level as f16 (low nibbles are weights 0..15).
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

// Twice the magnitude of a 4-bit float: 0 1 2 3 4 6 8 12 (formats/quant/tables.cpp).
fn weight_of(nibble: u32, e: u32) -> u32 {
  let levels = vec2<u32>(0x03020100u, 0x0C080604u);
  let magnitude = (levels[(nibble >> 2u) & 1u] >> (8u * (nibble & 3u))) & 0xFFu;
  if (magnitude == 0u) { return 0u; }
  let sign = (nibble & 8u) << 12u;
  // The exponent of an f32 has 128 more: what f16 cannot hold anyway is kept out of the way of overflow.
  let bits = bitcast<u32>(f32(magnitude));
  let exponent = (bits >> 23u) + e;  // 128 too much
  if (exponent >= 271u) { return sign | 0x7C00u; }  // 2^16
  if (exponent < 230u) { return sign; }             // below 2^-25
  return sign | f16_bits(bitcast<f32>(((exponent - 128u) << 23u) | (bits & 0x7FFFFFu)));
}

fn read_eight(row_at: u32, eight: u32) -> vec4<u32> {
  let block = row_at + 17u * (eight >> 2u);
  let e = byte_at(block);
  let at = block + 1u + 8u * (eight & 1u);
  let shift = vec2<u32>(4u * ((eight >> 1u) & 1u));
  let nibbles = (vec2<u32>(word_at(at), word_at(at + 4u)) >> shift) & vec2<u32>(0x0F0F0F0Fu);
  var out: array<u32, 4>;
  for (var i = 0u; i < 4u; i++) {
    let pair = nibbles[i >> 1u] >> (16u * (i & 1u));
    out[i] = weight_of(pair & 15u, e) | (weight_of((pair >> 8u) & 15u, e) << 16u);
  }
  return vec4<u32>(out[0], out[1], out[2], out[3]);
}
