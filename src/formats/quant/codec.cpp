// The table of number types. A new block type is one row here, its functions in a family's file, and a row in
// base/dtype.cpp; repack.cpp says what the GPU gets for it.
#include "formats/quant/codec.h"

#include "formats/quant/families.h"

namespace doppler::formats {
namespace {

struct Codec {
  DType type;
  void (*dequantise)(const uint8_t* in, float* out, size_t blocks);
  void (*quantise)(const float* x, const float* importance, uint8_t* out, size_t blocks);
};

constexpr Codec kCodecs[] = {
    {DType::kF32, quant::dequantise_f32, quant::quantise_f32},
    {DType::kF16, quant::dequantise_f16, quant::quantise_f16},
    {DType::kBF16, quant::dequantise_bf16, quant::quantise_bf16},
    {DType::kQ4_0, quant::dequantise_q4_0, quant::quantise_q4_0},
    {DType::kQ4_1, quant::dequantise_q4_1, quant::quantise_q4_1},
    {DType::kQ5_0, quant::dequantise_q5_0, quant::quantise_q5_0},
    {DType::kQ5_1, quant::dequantise_q5_1, quant::quantise_q5_1},
    {DType::kQ8_0, quant::dequantise_q8_0, quant::quantise_q8_0},
    {DType::kQ2_K, quant::dequantise_q2_k, quant::quantise_q2_k},
    {DType::kQ3_K, quant::dequantise_q3_k, quant::quantise_q3_k},
    {DType::kQ4_K, quant::dequantise_q4_k, quant::quantise_q4_k},
    {DType::kQ5_K, quant::dequantise_q5_k, quant::quantise_q5_k},
    {DType::kQ6_K, quant::dequantise_q6_k, quant::quantise_q6_k},
    {DType::kIQ4_NL, quant::dequantise_iq4_nl, quant::quantise_iq4_nl},
    {DType::kMXFP4, quant::dequantise_mxfp4, quant::quantise_mxfp4},
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

bool can_quantise(DType type) { return find_codec(type) != nullptr; }

std::string quantisable_type_names() {
  std::string names;
  for (const Codec& codec : kCodecs)
    names += (names.empty() ? "" : ", ") + std::string(dtype_info(codec.type).name);
  return names;
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

Result<> quantise(DType type, const float* x, uint8_t* out, size_t count, const float* importance) {
  const Codec* codec = find_codec(type);
  if (!codec) {
    return fail(ErrorKind::kUnsupported, "Weights cannot be written as %s; they can as %s.",
                dtype_info(type).name, quantisable_type_names().c_str());
  }
  DP_TRY(const size_t n_blocks, whole_blocks(type, count));
  codec->quantise(x, importance, out, n_blocks);
  return {};
}

}  // namespace doppler::formats
