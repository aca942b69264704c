// Internal to formats/quant: the functions in the table of codec.cpp. Each handles whole blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::formats::quant {

// plain.cpp
void dequantise_f32(const uint8_t* in, float* out, size_t numbers);
void dequantise_f16(const uint8_t* in, float* out, size_t numbers);
void dequantise_bf16(const uint8_t* in, float* out, size_t numbers);
void quantise_f32(const float* x, const float* importance, uint8_t* out, size_t numbers);
void quantise_f16(const float* x, const float* importance, uint8_t* out, size_t numbers);
void quantise_bf16(const float* x, const float* importance, uint8_t* out, size_t numbers);

// blocks_of_32.cpp
void dequantise_q4_0(const uint8_t* in, float* out, size_t blocks);
void dequantise_q4_1(const uint8_t* in, float* out, size_t blocks);
void dequantise_q5_0(const uint8_t* in, float* out, size_t blocks);
void dequantise_q5_1(const uint8_t* in, float* out, size_t blocks);
void dequantise_q8_0(const uint8_t* in, float* out, size_t blocks);
void unpack_q5_0_codes(const uint8_t* block, int8_t codes[32]);  // -16..15

// tables.cpp
void dequantise_iq4_nl(const uint8_t* in, float* out, size_t blocks);
void dequantise_mxfp4(const uint8_t* in, float* out, size_t blocks);
void unpack_iq4_nl_codes(const uint8_t* block, int8_t codes[32]);   // -127..113
void unpack_mxfp4_levels(const uint8_t* block, int8_t levels[32]);  // -12..12

// k_small.cpp
void dequantise_q2_k(const uint8_t* in, float* out, size_t blocks);
void dequantise_q3_k(const uint8_t* in, float* out, size_t blocks);
void unpack_q3_k_codes(const uint8_t* block, int8_t codes[256], int8_t scales[16]);      // -4..3, -32..31
void pack_q3_k_codes(const int8_t codes[256], const int8_t scales[16], uint8_t* block);  // all but d
void pack_two_bits(const uint8_t codes[256], uint8_t qs[64]);

// k_large.cpp
void dequantise_q4_k(const uint8_t* in, float* out, size_t blocks);
void dequantise_q5_k(const uint8_t* in, float* out, size_t blocks);
void dequantise_q6_k(const uint8_t* in, float* out, size_t blocks);
void pack_q6_k_codes(const int8_t codes[256], uint8_t ql_qh[192]);  // -32..31 -> ql[128] qh[64]

// For the quantisers `importance` has a number a weight, or is null.
// quantise_32.cpp
void quantise_q8_0(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q4_0(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q4_1(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q5_0(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q5_1(const float* x, const float* importance, uint8_t* out, size_t blocks);

// tables.cpp
void quantise_iq4_nl(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_mxfp4(const float* x, const float* importance, uint8_t* out, size_t blocks);

// quantise_k_affine.cpp
void quantise_q2_k(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q4_k(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q5_k(const float* x, const float* importance, uint8_t* out, size_t blocks);

// quantise_k_symmetric.cpp
void quantise_q3_k(const float* x, const float* importance, uint8_t* out, size_t blocks);
void quantise_q6_k(const float* x, const float* importance, uint8_t* out, size_t blocks);

}  // namespace doppler::formats::quant
