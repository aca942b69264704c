// The families whose Hugging Face folders become GGUF: names, tensors, and how their numbers differ. A new family is
// a row of kFamilies, and rows of kTensors for tensors that no other has (hf_families.cpp). Facts: llama.cpp's
// convert_hf_to_gguf.py and gguf-py/gguf/tensor_mapping.py.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "formats/quant/mix.h"

namespace doppler::formats {

// Bits of HfTensor::needs, HfFamily::has and HfShape::has.
enum HfFeature : uint32_t {
  kHasAlways = 0,
  kHasPlainNorms = 1,     // post_attention_layernorm comes before the feed-forward
  kHasSandwichNorms = 2,  // norms before and after both attention and feed-forward
  kHasQkNorms = 4,        // of each head
  kHasQkvBiases = 8,
  kHasWindow = 16,           // config.json's sliding_window counts
  kHasLocalRope = 32,        // rope_local_base_freq for the layers with a window
  kHasInterleavedRope = 64,  // llama.cpp rotates neighbours: rows of q and k change places
  kHasNormsMinusOne = 128,   // norms are stored as w - 1
  kMayHaveBiases = 256,      // where config.json's attention_bias and mlp_bias say so:
  kHasOutBias = 512,         // of attention's output matrix
  kHasMlpBiases = 1024,
};

struct HfFamily {
  const char* model_type;         // of config.json
  const char* gguf_architecture;  // general.architecture and the prefix of its keys
  uint32_t has;
  uint32_t default_ctx_len, default_vocab, default_heads, default_kv_heads,
      default_head_dim;  // 0: must be given
};

// Errors list the types that are known.
Result<const HfFamily*> find_hf_family(std::string_view model_type);

// Whether a GGUF architecture is that of a family here: all of them have separate q, k and v.
bool is_hf_family_of_gguf(std::string_view architecture);

// Dimensions by name, so that the table below says what a shape is made of.
enum class HfDim : uint8_t { kNone, kHidden, kQRows, kKvRows, kFfn, kVocab, kHeadDim };

struct HfTensor {
  const char* hf;    // behind "model." or "model.layers.N."; lm_head has no prefix
  const char* gguf;  // behind nothing or "blk.N."
  bool in_layer;
  HfDim rows, columns;  // rows kNone: a vector
  uint32_t needs;       // features of which the family must have all
  bool is_norm = false;
};
// What GGUF calls a matrix of a Hugging Face checkpoint, whatever its family; empty: nothing of the table. Norms' names
// depend on the family.
std::string gguf_name_of(std::string_view hf_name);

std::span<const HfTensor> hf_tensors();  // in the order in which a forward pass touches them

}  // namespace doppler::formats
