// q2_k and q3_k: 256 weights a block, 16 groups of 16 with small integer scales.
//   q2_k  u8 scales[16] (low 4 bits scale s, high 4 bits minimum m), 2-bit qs[64], f16 d, f16 dmin
//         w = d*s * q - dmin*m
//   q3_k  third bits hmask[32], 2-bit qs[64], 6-bit scales in 12 B, f16 d
//         w = d*(s - 32) * (q - 4), q with its third bit
// 2-bit code of weight 128*n + 32*j + l (n < 2, j < 4, l < 32): bits 2j of qs[32*n + l]. Its third bit: bit
// 4*n + j of hmask[l]. Its group: weight / 16.
#include <cstring>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 256;

float half_at(const uint8_t* at) { return f16_to_f32(load_le<uint16_t>(at)); }

uint32_t two_bits(const uint8_t* qs, size_t weight) {
  const size_t n = weight / 128, j = weight % 128 / 32, l = weight % 32;
  return (uint32_t{qs[32 * n + l]} >> (2 * j)) & 3;
}

// Scale i of 16: low 4 bits in byte i % 8 (low nibble for i < 8), high 2 bits in byte 8 + i % 4 at 2 * (i /
// 4).
int8_t q3_k_scale(const uint8_t* packed, size_t i) {
  const uint32_t low = i < 8 ? packed[i] & 0xFu : uint32_t{packed[i - 8]} >> 4;
  const uint32_t high = (uint32_t{packed[8 + i % 4]} >> (2 * (i / 4))) & 3;
  return static_cast<int8_t>(static_cast<int>(low | (high << 4)) - 32);
}

void store_q3_k_scale(uint8_t* packed, size_t i, int8_t scale) {
  const auto bits = static_cast<uint32_t>(scale + 32);
  uint8_t& low = packed[i % 8];
  uint8_t& high = packed[8 + i % 4];
  low = static_cast<uint8_t>(low | ((bits & 0xF) << (i < 8 ? 0 : 4)));
  high = static_cast<uint8_t>(high | (bits >> 4 << (2 * (i / 4))));
}

}  // namespace

void pack_two_bits(const uint8_t codes[kBlock], uint8_t qs[64]) {
  for (size_t i = 0; i < 64; ++i) {
    const uint8_t* at = codes + i / 32 * 128 + i % 32;
    qs[i] = static_cast<uint8_t>(at[0] | at[32] << 2 | at[64] << 4 | at[96] << 6);
  }
}

void pack_q3_k_codes(const int8_t codes[kBlock], const int8_t scales[16], uint8_t* block) {
  std::memset(block, 0, 108);
  uint8_t low[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    const auto code = static_cast<uint32_t>(codes[i] + 4);
    low[i] = static_cast<uint8_t>(code & 3);
    block[i % 32] = static_cast<uint8_t>(block[i % 32] | (code >> 2 << (i / 32)));
  }
  pack_two_bits(low, block + 32);
  for (size_t i = 0; i < 16; ++i) store_q3_k_scale(block + 96, i, scales[i]);
}

void dequantise_q2_k(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 84, out += kBlock) {
    const float d = half_at(in + 80), dmin = half_at(in + 82);
    for (size_t group = 0; group < 16; ++group) {
      const float scale = d * static_cast<float>(in[group] & 0xF);
      const float minimum = dmin * static_cast<float>(in[group] >> 4);
      for (size_t i = 16 * group; i < 16 * group + 16; ++i) {
        out[i] = scale * static_cast<float>(two_bits(in + 16, i)) - minimum;
      }
    }
  }
}

void unpack_q3_k_codes(const uint8_t* block, int8_t codes[kBlock], int8_t scales[16]) {
  for (size_t i = 0; i < 16; ++i) scales[i] = q3_k_scale(block + 96, i);
  for (size_t i = 0; i < kBlock; ++i) {
    const uint32_t third = (uint32_t{block[i % 32]} >> (i / 32)) & 1;
    codes[i] = static_cast<int8_t>(static_cast<int>(two_bits(block + 32, i) | (third << 2)) - 4);
  }
}

void dequantise_q3_k(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 110, out += kBlock) {
    const float d = half_at(in + 108);
    int8_t codes[kBlock], scales[16];
    unpack_q3_k_codes(in, codes, scales);
    for (size_t i = 0; i < kBlock; ++i) {
      out[i] = d * static_cast<float>(scales[i / 16]) * static_cast<float>(codes[i]);
    }
  }
}

}  // namespace doppler::formats::quant
