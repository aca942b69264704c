// The table of mixes (mix.h); a new one is a new row.
#include "formats/quant/mix.h"

namespace doppler::formats {
namespace {

using enum DType;

constexpr QuantMix kMixes[] = {
    {"f32", 0, kF32, kF32, kF32, false},
    {"f16", 1, kF16, kF16, kF16, false},
    {"bf16", 32, kBF16, kBF16, kBF16, false},
    {"q8_0", 7, kQ8_0, kQ8_0, kQ8_0, false},
    {"q4_0", 2, kQ4_0, kQ4_0, kQ4_0, false},
    {"q4_1", 3, kQ4_1, kQ4_1, kQ4_1, false},
    {"q5_0", 8, kQ5_0, kQ5_0, kQ5_0, false},
    {"q5_1", 9, kQ5_1, kQ5_1, kQ5_1, false},
    {"q2_k", 21, kQ2_K, kQ2_K, kQ2_K, false},
    {"q3_k", 11, kQ3_K, kQ3_K, kQ3_K, false},
    {"q4_k", 14, kQ4_K, kQ4_K, kQ4_K, false},
    {"q5_k", 16, kQ5_K, kQ5_K, kQ5_K, false},
    {"q6_k", 18, kQ6_K, kQ6_K, kQ6_K, false},
    {"iq4_nl", 25, kIQ4_NL, kIQ4_NL, kIQ4_NL, false},
    {"mxfp4", 38, kMXFP4, kMXFP4, kMXFP4, false},
    {"q4_k_m", 15, kQ4_K, kQ4_K, kQ6_K, true},
    {"q5_k_m", 17, kQ5_K, kQ5_K, kQ6_K, true},
    {"q4_k_e6", 14, kQ4_K, kQ6_K, kQ6_K, false},  // q4_k with embedding and output in q6_k
    {"q4_0_e8", 2, kQ4_0, kQ8_0, kQ8_0, false},   // q4_0 with embedding and output in q8_0
};

bool layer_gets_more_bits(uint32_t layer, uint32_t n_layers) {
  const uint32_t eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

}  // namespace

const QuantMix* find_quant_mix(std::string_view name) {
  for (const QuantMix& mix : kMixes) {
    if (name == mix.name) return &mix;
  }
  return nullptr;
}

std::string quant_mix_names() {
  std::string names;
  for (const QuantMix& mix : kMixes) names += (names.empty() ? "" : ", ") + std::string(mix.name);
  return names;
}

DType type_for(const QuantMix& mix, const TensorPlace& place) {
  switch (place.role) {
    case TensorRole::kEmbedding:
      return place.tied ? mix.output : mix.embedding;
    case TensorRole::kOutput:
      return mix.output;
    case TensorRole::kAttnV:
    case TensorRole::kFfnDown:
      if (mix.more_bits && layer_gets_more_bits(place.layer, place.n_layers)) return kQ6_K;
      if (mix.more_bits && place.wide_groups && place.role == TensorRole::kAttnV) return kQ5_K;
      return mix.matrices;
    case TensorRole::kOtherMatrix:
      return mix.matrices;
  }
  return mix.matrices;
}

DType with_smaller_block(DType type, uint64_t k) {
  constexpr uint64_t kSmallBlock = 32;
  if (k % kSmallBlock != 0 || dtype_info(type).block_size == kSmallBlock) return DType::kF16;
  switch (type) {
    case DType::kQ2_K:
    case DType::kQ3_K:
      return DType::kIQ4_NL;
    case DType::kQ4_K:
      return DType::kQ5_0;
    case DType::kQ5_K:
      return DType::kQ5_1;
    default:
      return DType::kQ8_0;
  }
}

}  // namespace doppler::formats
