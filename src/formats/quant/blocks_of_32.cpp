// The types with 32 weights a block and their own scale (f16 d, and for the "_1" types f16 m):
//   q4_0  d, 16 B nibbles               w = d * (q - 8)
//   q4_1  d, m, 16 B nibbles            w = d * q + m
//   q5_0  d, u32 fifth bits, 16 B       w = d * (q - 16)
//   q5_1  d, m, u32 fifth bits, 16 B    w = d * q + m
//   q8_0  d, 32 int8                    w = d * q
// Byte i of the nibbles holds weight i (low) and weight i + 16 (high); bit i of the fifth bits is weight i's.
#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 32;

float half_at(const uint8_t* at) { return f16_to_f32(load_le<uint16_t>(at)); }

void unpack_nibbles(const uint8_t* nibbles, int8_t codes[kBlock]) {
  for (size_t i = 0; i < 16; ++i) {
    codes[i] = static_cast<int8_t>(nibbles[i] & 0xF);
    codes[i + 16] = static_cast<int8_t>(nibbles[i] >> 4);
  }
}

void add_fifth_bits(uint32_t bits, int8_t codes[kBlock]) {
  for (size_t i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(codes[i] | (((bits >> i) & 1) << 4));
}

}  // namespace

void dequantise_q4_0(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 18, out += kBlock) {
    const float d = half_at(in);
    for (size_t i = 0; i < 16; ++i) {
      out[i] = static_cast<float>((in[2 + i] & 0xF) - 8) * d;
      out[i + 16] = static_cast<float>((in[2 + i] >> 4) - 8) * d;
    }
  }
}

void dequantise_q4_1(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 20, out += kBlock) {
    const float d = half_at(in), m = half_at(in + 2);
    int8_t codes[kBlock];
    unpack_nibbles(in + 4, codes);
    for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<float>(codes[i]) * d + m;
  }
}

void unpack_q5_0_codes(const uint8_t* block, int8_t codes[kBlock]) {
  unpack_nibbles(block + 6, codes);
  add_fifth_bits(load_le<uint32_t>(block + 2), codes);
  for (size_t i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(codes[i] - 16);
}

void dequantise_q5_0(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 22, out += kBlock) {
    const float d = half_at(in);
    int8_t codes[kBlock];
    unpack_q5_0_codes(in, codes);
    for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<float>(codes[i]) * d;
  }
}

void dequantise_q5_1(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 24, out += kBlock) {
    const float d = half_at(in), m = half_at(in + 2);
    int8_t codes[kBlock];
    unpack_nibbles(in + 8, codes);
    add_fifth_bits(load_le<uint32_t>(in + 4), codes);
    for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<float>(codes[i]) * d + m;
  }
}

void dequantise_q8_0(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 34, out += kBlock) {
    const float d = half_at(in);
    for (size_t i = 0; i < kBlock; ++i) out[i] = static_cast<float>(load_le<int8_t>(in + 2 + i)) * d;
  }
}

}  // namespace doppler::formats::quant
