// The numbers of a model's architecture, the same whether they came from a GGUF or from a Hugging Face config.json.
// Read next: architecture.h (the row of a family, by which they are read).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/activation_fn.h"
#include "base/result.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

enum class RopeScaling : uint8_t { kNone, kLinear, kLlama3, kYarn, kLongRope };

// Which two numbers of a head are rotated together.
enum class RopePairing : uint8_t {
  kNeox,  // (i, i + rotary_dim / 2)
  kGptJ,  // (2i, 2i + 1)
};

// How positions turn into rotations; rope_frequencies.h makes the table. Names as in transformers' rope_parameters.
struct RopeConfig {
  double theta = 10000.0;
  uint32_t rotary_dim = 0;  // of head_dim, the part that rotates; even
  RopePairing pairing = RopePairing::kNeox;
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
  std::string family;        // Architecture::family of the row that it was read by
  std::string architecture;  // as the file says: "llama", "gemma3_text"
  std::string name;          // general.name, or the folder's name
  bool synthetic = false;    // weights are random: made by `doppler synth`
  bool gguf_names = false;   // tensor names and layouts are GGUF's
  // Hugging Face: what stands before the tensor names, and before lm_head's.
  std::string huggingface_prefix = "model.", huggingface_head_prefix;

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
  uint32_t sliding_window = 0;      // in tokens, its own included; 0: full attention
  std::vector<uint8_t> is_sliding;  // per layer, 1: the window applies; empty: it applies to all
  float attention_softcap = 0;      // c: attention logits are c * tanh(logits / c); 0: none
  bool tied_embeddings = false;
  // config.json asks for biases: of q, k, v and attention's output; of the feed-forward layer.
  bool attention_bias = false, mlp_bias = false;
  ActivationFn activation = ActivationFn::kSilu;
  RopeConfig rope;
  RopeConfig local_rope;  // of layers that slide, in families where it is another; rotary_dim 0: none
};

// True if layer `layer` sees only the sliding window.
bool is_sliding_layer(const ModelConfig& config, uint32_t layer);

// 1 / sqrt(head_dim)
float usual_attention_scale(const ModelConfig& config);

// Reads and checks every number. Errors name the field, what it holds and what is allowed, or the architecture and
// the ones this build knows. A field that changes the maths and is not understood is an error.
Result<ModelConfig> read_config(const Checkpoint& checkpoint);

}  // namespace doppler::formats
