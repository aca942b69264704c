// q6_k: 256 weights in 210 bytes: low nibbles[128], high pairs of bits[64], int8 scales[16], f16 d. Weight 128n + 32j +
// l:
// nibble j/2 of byte 64n + 32(j%2) + l, bits 2j of byte 32n + l; w = d*scale*(q-32).
//!import linear/repack/repack_bytes
//!import linear/repack/repack_half

fn codes_of(low: vec4<u32>, high: vec4<u32>, j: u32) -> vec4<u32> {
  return low_nibbles(low >> vec4<u32>(4u * (j >> 1u))) |
         (((high >> vec4<u32>(2u * j)) & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
}
fn signed_byte(at: u32) -> i32 { return i32(byte_at(at) << 24u) >> 24u; }

fn read_unit(row_at: u32, u: u32) -> Unit {
  let block = row_at + 210u * (u >> 3u);
  let n = (u >> 2u) & 1u;
  let j = u & 3u;
  let low = block + 64u * n + 32u * (j & 1u);
  let high = block + 128u + 32u * n;
  let scales = block + 192u + 2u * (u & 7u);
  let d = half_at(block + 208u);
  return Unit(codes_of(words_at(low), words_at(high), j), codes_of(words_at(low + 16u), words_at(high + 16u), j),
              scaled_half(d, signed_byte(scales)) | (scaled_half(d, signed_byte(scales + 1u)) << 16u));
}
