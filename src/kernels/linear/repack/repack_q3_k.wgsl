// q3_k: 256 weights in 110 bytes: third bits[32], pairs of bits[64], 6-bit scales in 12 bytes, f16 d. Weight
// 128n + 32j + l: bits 2j of byte 32n + l, third bit 4n + j of byte l; w = d*(scale-32)*(q-4). As tile_q6: q + 28.
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

fn codes_of(pairs: vec4<u32>, thirds: vec4<u32>, u: u32) -> vec4<u32> {
  return (((pairs >> vec4<u32>(2u * (u & 3u))) & vec4<u32>(0x03030303u)) |
          (((thirds >> vec4<u32>(u)) & vec4<u32>(0x01010101u)) << vec4<u32>(2u))) + vec4<u32>(28u * 0x01010101u);
}
// Scale i of 16: low 4 bits in byte i % 8 (low nibble for i < 8), high 2 bits in byte 8 + i % 4 at 2 * (i / 4).
fn scale_of(scales: u32, i: u32) -> i32 {
  let low = (byte_at(scales + (i & 7u)) >> (4u * (i >> 3u))) & 15u;
  let high = (byte_at(scales + 8u + (i & 3u)) >> (2u * (i >> 2u))) & 3u;
  return i32(low | (high << 4u)) - 32;
}

fn read_unit(row_at: u32, in_row: u32) -> Unit {
  let block = row_at + 110u * (in_row >> 3u);
  let u = in_row & 7u;
  let pairs = block + 32u + 32u * (u >> 2u);
  let d = half_at(block + 108u);
  return Unit(codes_of(words_at(pairs), words_at(block), u), codes_of(words_at(pairs + 16u), words_at(block + 16u), u),
              scaled_half(d, scale_of(block + 96u, 2u * u)) |
                  (scaled_half(d, scale_of(block + 96u, 2u * u + 1u)) << 16u));
}
