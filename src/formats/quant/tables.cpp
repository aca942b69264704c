// The types whose 4-bit codes index a table of values; 32 weights a block, nibbles as in blocks_of_32.cpp:
//   iq4_nl  f16 d, 16 B nibbles          w = d * table[q]
//   mxfp4   u8 exponent e, 16 B nibbles  w = 2^(e - 128) * table[q]   (OCP microscaling; the table is
//   doubled)
#include <bit>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 32;
// Defined by the type: levels that suit bell-shaped weights.
constexpr int8_t kIq4Nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the values of a 4-bit float with 2 exponent bits and 1 mantissa bit.
constexpr int8_t kMxfp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(exponent - 128); the two smallest are subnormal in float.
float power_of_two(uint8_t exponent) {
  const uint32_t bits =
      exponent < 2 ? uint32_t{0x00200000} << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

void look_up(const uint8_t* nibbles, const int8_t table[16], int8_t codes[kBlock]) {
  for (size_t i = 0; i < 16; ++i) {
    codes[i] = table[nibbles[i] & 0xF];
    codes[i + 16] = table[nibbles[i] >> 4];
  }
}

void scale(const int8_t codes[kBlock], float d, float* out) {
  for (size_t i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(codes[i]);
}

}  // namespace

void unpack_iq4_nl_codes(const uint8_t* block, int8_t codes[kBlock]) { look_up(block + 2, kIq4Nl, codes); }

void dequantise_iq4_nl(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 18, out += kBlock) {
    int8_t codes[kBlock];
    unpack_iq4_nl_codes(in, codes);
    scale(codes, f16_to_f32(load_le<uint16_t>(in)), out);
  }
}

void dequantise_mxfp4(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 17, out += kBlock) {
    int8_t codes[kBlock];
    look_up(in + 1, kMxfp4, codes);
    scale(codes, power_of_two(in[0]), out);
  }
}

}  // namespace doppler::formats::quant
