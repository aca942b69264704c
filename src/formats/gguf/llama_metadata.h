// The GGUF description of a model of the "llama" architecture, or of "gemma3", shared by synth/ (made-up weights) and
// convert/. Key and tensor names: llama.cpp's, github.com/ggml-org/ggml docs/gguf.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "formats/quant/mix.h"

namespace doppler::formats {

inline constexpr uint32_t kQuantisationVersion = 2;  // of the block layouts, as llama.cpp writes it

// Llama 3.1's stretching of the slow rotary frequencies; factor 0: none.
struct Llama3Rope {
  float factor = 0;
  float low_freq_factor = 1;
  float high_freq_factor = 4;
  uint32_t original_ctx_len = 8192;
};

struct LlamaShape {
  uint32_t n_layers, hidden_dim, n_heads, n_kv_heads, head_dim, ffn_dim, vocab_size, ctx_len;
  float rope_theta, rms_eps;
  bool tied;
  Llama3Rope rope;
  bool gemma3 = false;  // norms also of branches and of q and k heads; heads not permuted
  uint32_t window = 0;  // sliding attention window; 0: none
};

// What each rotary frequency is divided by (head_dim / 2 values): the tensor "rope_freqs.weight".
std::vector<float> llama3_rope_factors(const LlamaShape& shape);

// What every architecture of this shape has: general.architecture, file type, sizes, eps, rotation.
void add_shape_metadata(GgufHeader& header, std::string_view architecture, const LlamaShape& shape,
                        uint32_t file_type);

// The architecture's fields ("llama.*", general.architecture, file type); the caller adds names and
// tokenizer.
void add_llama_metadata(GgufHeader& header, const LlamaShape& shape, const QuantMix& mix);

// Every tensor in the order in which a forward pass touches it.
struct LlamaTensor {
  enum class Kind : uint8_t { kMatrix, kNorm, kRopeFactors };
  std::string gguf_name;
  std::string hf_name;  // empty for kRopeFactors
  Kind kind;
  DType type;
  std::vector<uint64_t> shape;
  uint32_t permuted_heads = 0;  // q and k: heads whose rows GGUF reorders for interleaved rotation; 0: none
};
std::vector<LlamaTensor> llama_tensors(const LlamaShape& shape, const QuantMix& mix);

// The block types need inner dimensions that are multiples of their block; a sentence naming the tensor if
// not.
Result<> check_llama_tensors(const std::vector<LlamaTensor>& tensors);

}  // namespace doppler::formats
