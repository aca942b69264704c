// F32, F16 and BF16: one number at a time. "Block" means number here.
#include <cstring>

#include "base/half.h"
#include "formats/byte_reader.h"
#include "formats/quant/families.h"

namespace doppler::formats::quant {

void dequantise_f32(const uint8_t* in, float* out, size_t numbers) { std::memcpy(out, in, numbers * 4); }

void dequantise_f16(const uint8_t* in, float* out, size_t numbers) {
  for (size_t i = 0; i < numbers; ++i) out[i] = f16_to_f32(load_le<uint16_t>(in + 2 * i));
}

void dequantise_bf16(const uint8_t* in, float* out, size_t numbers) {
  for (size_t i = 0; i < numbers; ++i) out[i] = bf16_to_f32(load_le<uint16_t>(in + 2 * i));
}

void quantise_f32(const float* x, const float* /*importance*/, uint8_t* out, size_t numbers) {
  std::memcpy(out, x, numbers * 4);
}

void quantise_f16(const float* x, const float* /*importance*/, uint8_t* out, size_t numbers) {
  for (size_t i = 0; i < numbers; ++i) store_le(out + 2 * i, f32_to_f16(x[i]));
}

void quantise_bf16(const float* x, const float* /*importance*/, uint8_t* out, size_t numbers) {
  for (size_t i = 0; i < numbers; ++i) store_le(out + 2 * i, f32_to_bf16(x[i]));
}

}  // namespace doppler::formats::quant
