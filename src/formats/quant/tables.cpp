// The types whose 4-bit codes index a table of values; 32 weights a block, nibbles as in blocks_of_32.cpp:
//   iq4_nl  f16 d, 16 B nibbles          w = d * table[q]
//   mxfp4   u8 exponent e, 16 B nibbles  w = 2^(e - 128) * table[q]   (OCP microscaling; the table is
//   doubled)
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"
#include "formats/quant/scale_search.h"

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

// The place of the level nearest to v among 16 rising levels: how many of the midpoints between neighbours lie below.
uint8_t nearest_level(float v, const float levels[16]) {
  int place = 0;
  for (size_t j = 0; j < 15; ++j) place += v > 0.5f * (levels[j] + levels[j + 1]) ? 1 : 0;
  return static_cast<uint8_t>(place);
}

struct Levels {
  float at[16];
};
constexpr Levels rising_iq4_nl() {
  Levels levels{};
  for (size_t i = 0; i < 16; ++i) levels.at[i] = kIq4Nl[i];
  return levels;
}
constexpr Levels kIq4NlLevels = rising_iq4_nl();

// The level nearest to v itself, without a branch or a look-up: vector code for whole blocks.
float nearest_level_value(float v) {
  float value = kIq4NlLevels.at[0];
  for (size_t j = 0; j < 15; ++j) {
    const float below = kIq4NlLevels.at[j], above = kIq4NlLevels.at[j + 1];
    value += v > 0.5f * (below + above) ? above - below : 0;
  }
  return value;
}

// Steps of the grid around the scales that bring the largest weight to one of the outermost levels, in level units.
constexpr int kSteps = 4;
constexpr float kStep = 6;

float fit_iq4_nl(const float* x, const float* weights) {
  constexpr size_t kLanes = 8;
  float extreme = 0, wx[kBlock];
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
    wx[i] = weights[i] * x[i];
  }
  if (extreme == 0) return 0;
  double best_gain = -1, best_scale = 0;
  for (const float outermost : {kIq4NlLevels.at[0], kIq4NlLevels.at[15]}) {
    for (int step = -kSteps; step <= kSteps; ++step) {
      const float inverse = (outermost + kStep * static_cast<float>(step)) / extreme;
      float wxq[kLanes] = {}, wqq[kLanes] = {};
      for (size_t i = 0; i < kBlock; i += kLanes) {
        for (size_t l = 0; l < kLanes; ++l) {
          const float q = nearest_level_value(inverse * x[i + l]);
          wxq[l] += wx[i + l] * q;
          wqq[l] += weights[i + l] * q * q;
        }
      }
      double xq = 0, qq = 0;
      for (size_t l = 0; l < kLanes; ++l) {
        xq += wxq[l];
        qq += wqq[l];
      }
      if (qq > 0 && xq * xq > best_gain * qq) {
        best_gain = xq * xq / qq;
        best_scale = xq / qq;
      }
    }
  }
  return static_cast<float>(best_scale);
}

// Codes of a block for the power of two 2^(exponent - 128), and their weighted squared error.
double encode_mxfp4(const float* x, const float* weights, uint8_t exponent, uint8_t codes[kBlock]) {
  constexpr float kMagnitudes[8] = {0, 1, 2, 3, 4, 6, 8, 12};
  const float d = power_of_two(exponent), inverse = 1 / d;
  double error = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const float magnitude = std::abs(x[i]) * inverse;
    int place = 0;
    for (size_t j = 0; j < 7; ++j) place += magnitude > 0.5f * (kMagnitudes[j] + kMagnitudes[j + 1]) ? 1 : 0;
    const float difference = d * kMagnitudes[place] - std::abs(x[i]);
    error += weights[i] * difference * difference;
    codes[i] = static_cast<uint8_t>(place | (x[i] < 0 && place != 0 ? 8 : 0));
  }
  return error;
}

void pack_nibbles(const uint8_t codes[kBlock], uint8_t* nibbles) {
  for (size_t i = 0; i < 16; ++i) nibbles[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
}

}  // namespace

void unpack_iq4_nl_codes(const uint8_t* block, int8_t codes[kBlock]) { look_up(block + 2, kIq4Nl, codes); }
void unpack_mxfp4_levels(const uint8_t* block, int8_t levels[kBlock]) { look_up(block + 1, kMxfp4, levels); }

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
    unpack_mxfp4_levels(in, codes);
    scale(codes, power_of_two(in[0]), out);
  }
}

void quantise_iq4_nl(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 18, importance += importance ? kBlock : 0) {
    float weights[kBlock];
    error_weights(x, importance, kBlock, weights);
    const uint16_t d_bits = f32_to_f16(fit_iq4_nl(x, weights));
    const float d = f16_to_f32(d_bits), inverse = d == 0 ? 0 : 1 / d;
    uint8_t codes[kBlock];
    for (size_t i = 0; i < kBlock; ++i) codes[i] = nearest_level(x[i] * inverse, kIq4NlLevels.at);
    store_le(out, d_bits);
    pack_nibbles(codes, out + 2);
  }
}

// Powers of two below the one that reaches the largest weight clip it, but may still lose less.
void quantise_mxfp4(const float* x, const float* importance, uint8_t* out, size_t blocks) {
  constexpr int kBias = 128, kMaxExponent = 254, kCandidates = 3;
  constexpr float kLargest = 12;
  for (size_t b = 0; b < blocks; ++b, x += kBlock, out += 17, importance += importance ? kBlock : 0) {
    float weights[kBlock], largest = 0;
    error_weights(x, importance, kBlock, weights);
    for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(x[i]));
    // Clamped before it becomes an int: the logarithm of 0 or of an infinite weight is infinite.
    const float power = std::clamp(std::ceil(std::log2(largest / kLargest)), -128.0f, 126.0f);
    const int reaches = static_cast<int>(power) + kBias;
    double best = -1;
    for (int candidate = 0; candidate < kCandidates; ++candidate) {
      const auto exponent = static_cast<uint8_t>(std::clamp(reaches - candidate, 0, kMaxExponent));
      uint8_t codes[kBlock];
      const double error = encode_mxfp4(x, weights, exponent, codes);
      if (best >= 0 && error >= best) continue;
      best = error;
      out[0] = exponent;
      pack_nibbles(codes, out + 1);
    }
  }
}

}  // namespace doppler::formats::quant
