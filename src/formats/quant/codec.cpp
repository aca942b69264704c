// The table of number types. A new block type is one row here, its functions in a family's file, and a row in
// base/dtype.cpp; repack.cpp says what the GPU gets for it.
#include "formats/quant/codec.h"

#include "formats/quant/families.h"

namespace doppler::formats {
namespace {

struct Codec {
  DType type;
  void (*dequantise)(const uint8_t* in, float* out, size_t blocks);
  void (*quantise)(const float* x, uint8_t* out, size_t blocks);  // null: not written
};

constexpr Codec kCodecs[] = {
    {DType::kF32, quant::dequantise_f32, quant::quantise_f32},
    {DType::kF16, quant::dequantise_f16, quant::quantise_f16},
    {DType::kBF16, quant::dequantise_bf16, quant::quantise_bf16},
    {DType::kQ4_0, quant::dequantise_q4_0, quant::quantise_q4_0},
    {DType::kQ4_1, quant::dequantise_q4_1, nullptr},
    {DType::kQ5_0, quant::dequantise_q5_0, nullptr},
    {DType::kQ5_1, quant::dequantise_q5_1, nullptr},
    {DType::kQ8_0, quant::dequantise_q8_0, quant::quantise_q8_0},
    {DType::kQ2_K, quant::dequantise_q2_k, nullptr},
    {DType::kQ3_K, quant::dequantise_q3_k, nullptr},
    {DType::kQ4_K, quant::dequantise_q4_k, quant::quantise_q4_k},
    {DType::kQ5_K, quant::dequantise_q5_k, quant::quantise_q5_k},
    {DType::kQ6_K, quant::dequantise_q6_k, quant::quantise_q6_k},
    {DType::kIQ4_NL, quant::dequantise_iq4_nl, nullptr},
    {DType::kMXFP4, quant::dequantise_mxfp4, nullptr},
};

const Codec* find_codec(DType type) {
  for (const Codec& codec : kCodecs) {
    if (codec.type == type) return &codec;
  }
  return nullptr;
}

Result<size_t> whole_blocks(DType type, size_t count) {
  const DTypeInfo& info = dtype_info(type);
  if (count % info.block_size == 0) return count / info.block_size;
  return fail(ErrorKind::kInvalidInput, "%zu numbers are not a multiple of the %s block (%u).", count,
              info.name, info.block_size);
}

}  // namespace

bool can_dequantise(DType type) { return find_codec(type) != nullptr; }

bool can_quantise(DType type) {
  const Codec* codec = find_codec(type);
  return codec && codec->quantise;
}

Result<> dequantise(DType type, const uint8_t* blocks, float* out, size_t count) {
  const Codec* codec = find_codec(type);
  if (!codec) {
    return fail(ErrorKind::kUnsupported, "Numbers of type %s cannot be used as weights.",
                dtype_info(type).name);
  }
  DP_TRY(const size_t n_blocks, whole_blocks(type, count));
  codec->dequantise(blocks, out, n_blocks);
  return {};
}

Result<> quantise(DType type, const float* x, uint8_t* out, size_t count) {
  if (!can_quantise(type)) {
    return fail(ErrorKind::kUnsupported,
                "Weights cannot be written as %s; f32, f16, bf16, q8_0, q4_0, q4_k, q5_k and q6_k can.",
                dtype_info(type).name);
  }
  DP_TRY(const size_t n_blocks, whole_blocks(type, count));
  find_codec(type)->quantise(x, out, n_blocks);
  return {};
}

}  // namespace doppler::formats
