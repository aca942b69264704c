// q4_k, q5_k and q6_k: 256 weights a block.
//   q4_k  f16 d, f16 dmin, 12 B of 6-bit scales s and minima m (8 groups of 32), nibbles qs[128]
//   q5_k  the same with fifth bits qh[32] before qs                  w = d*s * q - dmin*m
//   q6_k  ql[128], qh[64], int8 scales[16] (groups of 16), f16 d     w = d*s * (q - 32)
// q4_k, q5_k: group 2p has the low, group 2p + 1 the high nibbles of qs[32*p ...]; bit g of qh[l] is the
// fifth bit of weight l of group g. q6_k, weight 128*n + 32*j + l: low bits in ql[64*n + 32*(j % 2) + l] (low
// nibble for j < 2), high two bits at 2*j of qh[32*n + l].
#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"
#include "formats/quant/k_scales.h"

namespace doppler::formats::quant {
namespace {

constexpr size_t kBlock = 256;

float half_at(const uint8_t* at) { return f16_to_f32(load_le<uint16_t>(at)); }

// `fifth` is qh, or null for q4_k.
void dequantise_groups(const uint8_t* in, const uint8_t* fifth, const uint8_t* qs, float* out) {
  const float d = half_at(in), dmin = half_at(in + 2);
  for (size_t group = 0; group < 8; ++group) {
    const ScaleMin packed = unpack_scale_min(in + 4, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float minimum = dmin * static_cast<float>(packed.min);
    const uint8_t* nibbles = qs + 32 * (group / 2);
    for (size_t l = 0; l < 32; ++l) {
      uint32_t code = group % 2 == 0 ? nibbles[l] & 0xFu : uint32_t{nibbles[l]} >> 4;
      if (fifth) code |= ((uint32_t{fifth[l]} >> group) & 1) << 4;
      out[32 * group + l] = scale * static_cast<float>(code) - minimum;
    }
  }
}

}  // namespace

void dequantise_q4_k(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 144, out += kBlock) dequantise_groups(in, nullptr, in + 16, out);
}

void dequantise_q5_k(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 176, out += kBlock) dequantise_groups(in, in + 16, in + 48, out);
}

void dequantise_q6_k(const uint8_t* in, float* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, in += 210, out += kBlock) {
    const float d = half_at(in + 208);
    for (size_t i = 0; i < kBlock; ++i) {
      const size_t n = i / 128, j = i % 128 / 32, l = i % 32;
      const uint32_t low = (uint32_t{in[64 * n + 32 * (j % 2) + l]} >> (j < 2 ? 0 : 4)) & 0xF;
      const uint32_t high = (uint32_t{in[128 + 32 * n + l]} >> (2 * j)) & 3;
      const int code = static_cast<int>(low | (high << 4)) - 32;
      out[i] = d * static_cast<float>(load_le<int8_t>(in + 192 + i / 16)) * static_cast<float>(code);
    }
  }
}

void pack_q6_k_codes(const int8_t codes[kBlock], uint8_t ql_qh[192]) {
  for (size_t i = 0; i < 192; ++i) ql_qh[i] = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const size_t n = i / 128, j = i % 128 / 32, l = i % 32;
    const auto code = static_cast<uint32_t>(codes[i] + 32);
    uint8_t& low = ql_qh[64 * n + 32 * (j % 2) + l];
    uint8_t& high = ql_qh[128 + 32 * n + l];
    low = static_cast<uint8_t>(low | ((code & 0xF) << (j < 2 ? 0 : 4)));
    high = static_cast<uint8_t>(high | ((code >> 4) << (2 * j)));
  }
}

}  // namespace doppler::formats::quant
