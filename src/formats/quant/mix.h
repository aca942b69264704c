// The number type of each tensor of a model: "q4_k_m" is not one type but a choice per role and layer. Used by synth/
// and convert/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace doppler::formats {

enum class TensorRole : uint8_t { kEmbedding, kOutput, kAttnV, kFfnDown, kOtherMatrix };  // norms stay f32

struct QuantMix {
  const char* name;
  uint32_t file_type;  // general.file_type of GGUF: llama.cpp's number for the nearest of its own mixes
  DType matrices;
  DType embedding;  // of an embedding that is not the output matrix too
  DType output;     // of the output matrix, and of an embedding tied to it
  bool more_bits;   // attn_v and ffn_down of some layers get q6_k: see type_for()
};

const QuantMix* find_quant_mix(std::string_view name);  // null: unknown
std::string quant_mix_names();                          // "f32, f16, ..." for messages

struct TensorPlace {
  TensorRole role;
  uint32_t layer = 0, n_layers = 1;
  bool tied = false;         // the embedding is the output matrix
  bool wide_groups = false;  // 8 query heads share a key/value head in an 80-layer model (Llama 70B)
};
// With more_bits, as llama.cpp's Q4_K_M and Q5_K_M: attn_v and ffn_down are q6_k in the first and last eighth of the
// layers and in every third between; wide_groups gives the other attn_v q5_k, since so many heads read each.
DType type_for(const QuantMix& mix, const TensorPlace& place);

// The type for rows that are no multiple of the type's block, nearest in bits: a block of 32, or none.
DType with_smaller_block(DType type, uint64_t k);

}  // namespace doppler::formats
