// The numbers of a model's architecture, the same whether they came from a GGUF or from a Hugging Face config.json.
// Read next: families/family.h (what a family does with them).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/activation_fn.h"
#include "base/result.h"
#include "formats/checkpoint.h"

namespace doppler::model {

enum class RopeScaling : uint8_t { kNone, kLinear, kLlama3, kYarn, kLongRope };

// How positions turn into rotations; rope_frequencies.h makes the table. Names as in transformers' rope_parameters.
struct RopeConfig {
  double theta = 10000.0;
  uint32_t rotary_dim = 0;   // of head_dim, the part that rotates; even
  bool interleaved = false;  // pairs (2i, 2i+1), as GGUF's llama files have their q and k rows permuted for
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  double original_ctx_len = 0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  double mscale = 0, mscale_all_dim = 0;                 // yarn; 0: not given
  bool truncate = true;                                  // yarn
  double attention_factor = 0;                           // yarn, longrope; 0: by formula
  std::vector<double> long_factor, short_factor;         // longrope, one per pair
  std::string frequency_divisors;  // GGUF: name of a tensor that divides each frequency; empty: none
};

struct ModelConfig {
  std::string family;                         // "llama": the row of the family table
  std::string architecture;                   // as the file says: "LlamaForCausalLM", "llama"
  std::string name;                           // general.name, or the folder's name
  bool synthetic = false;                     // weights are random: made by `doppler synth`
  bool gguf_names = false;                    // tensor names and layouts are GGUF's
  std::string huggingface_prefix = "model.";  // of all tensor names but lm_head's

  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t hidden_dim = 0;
  uint32_t ffn_dim = 0;
  uint32_t vocab_size = 0;
  uint32_t ctx_len = 0;  // the longest the model was trained for
  float norm_eps = 1e-5f;
  float attention_scale = 0;
  uint32_t window = 0;          // sliding attention window in tokens, its own included; 0: full attention
  std::vector<uint8_t> slides;  // per layer, 1: the window applies; empty: it applies to all
  float attention_softcap = 0;  // c: attention logits are c * tanh(logits / c); 0: none
  bool tied_embeddings = false;
  ActivationFn activation = ActivationFn::kSilu;
  RopeConfig rope;
  RopeConfig local_rope;  // of layers that slide, in families where it is another; rotary_dim 0: none
};

// Reads and checks every number. Errors name the field, what it holds and what is allowed, or the architecture and
// the ones this build knows.
Result<ModelConfig> read_config(const formats::Checkpoint& checkpoint);

}  // namespace doppler::model
