// The numbers of a model's architecture, the same whether they came from a GGUF or from a Hugging Face config.json.
// Read next: architecture.h (the row of a family, by which they are read).
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/activation_fn.h"
#include "base/result.h"
#include "base/router_score.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

enum class RopeScaling : uint8_t {
  kNone,
  kLinear,
  kLlama3,
  kYarn,
  kLongRope,
  kProportional,
  kDynamic,  // none up to what the model was trained for; further positions are not computed
};

// The two numbers of a head that are rotated together.
enum class RopePairing : uint8_t {
  kNeox,  // (i, i + rotary_dim / 2)
  kGptJ,  // (2i, 2i + 1)
};

// The way in which positions turn into rotations; rope_frequencies.h makes the table. Names as in transformers'
// rope_parameters.
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
  double turning_part = 1;                               // proportional: of the pairs; the others stand still
  // Multi-axis positions (time, height, width) of models that see: so many pairs each, one after another or interleaved
  // (kernels/rope/rope.h, RopeAxes); all 0: one axis.
  std::array<uint32_t, 3> sections = {};
  bool interleaved_sections = false;
  std::string frequency_divisors;  // GGUF: name of a tensor that divides each frequency; empty: none
};

// A mixture of experts in place of the feed-forward layer.
struct MoeConfig {
  uint32_t n_experts = 0;    // 0: the model is dense
  uint32_t n_used = 0;       // experts a token
  uint32_t expert_dim = 0;   // feed-forward dimension of an expert
  uint32_t row_dim = 0;      // of what experts read and leave; 0: hidden_dim
  uint32_t shared_dim = 0;   // of what all tokens go through besides; 0: there is none
  bool shared_gate = false;  // which a sigmoid of a further projection multiplies
  RouterScore score = RouterScore::kSoftmax;
  bool has_score_bias = false;  // added for the choice, not to the weights
  bool norm_weights = false;    // those of the chosen are divided by their sum
  float norm_epsilon = 0;       // of that sum
  float weight_scale = 1;
  uint32_t n_groups = 1, groups_used = 1;  // experts are chosen within the best groups
  GroupScore group_score = GroupScore::kMax;
  std::vector<uint8_t> is_moe;   // per layer, 1: a mixture; empty: in all layers, if there are experts
  bool is_beside_dense = false;  // the feed-forward layer is there too
};

// Layers with a recurrent state in place of attention's keys and values: gated delta net, short convolution, Mamba2.
struct RecurrentConfig {
  std::vector<uint8_t> is_recurrent;  // per layer; empty: no layer is recurrent
  uint32_t conv_kernel = 0;           // taps, the present among them
  uint32_t conv_channels = 0;
  // The recurrence after the convolution; 0: there is none. Mamba2 has B as keys and C as queries, its groups are their
  // heads, and the state's dimension is theirs; x are the values.
  uint32_t n_key_heads = 0, n_value_heads = 0;
  uint32_t key_dim = 0, value_dim = 0;  // of a head
  bool is_tiled = false;                // value head h has keys of head h % n_key_heads: GGUF's order
};

// Multi-head latent attention (DeepSeek-AI 2024): keys and values come from one compressed vector a token. The cache
// holds only this vector: n_kv_heads is 1 and head_dim is kv_rank + rope_dim.
struct MlaConfig {
  uint32_t kv_rank = 0;                 // 0: usual attention
  uint32_t q_rank = 0;                  // 0: queries are not compressed
  uint32_t nope_dim = 0, rope_dim = 0;  // of a head's query and key: without and with rotation
  uint32_t value_dim = 0;
};

// ModelConfig::gate_deviations of layers that keep all of their gates.
inline constexpr float kAllGates = std::numeric_limits<float>::lowest();

// Embeddings that each layer has of each token (Gemma 3n).
struct LayerInputConfig {
  uint32_t dim = 0;         // of a layer; 0: there are none
  uint32_t vocab_size = 0;  // rows of their table
  uint32_t image_row = 0;   // of the table, for tokens of pictures
};

// Queries at position p are multiplied by 1 + beta * ln(1 + floor(p / ctx_len)), after their rotation (Llama 4).
struct QueryScaling {
  double beta = 0;  // 0: none
  double ctx_len = 0;
};

// The way in which the states of a text's tokens become one vector.
enum class Pooling : uint8_t { kNone, kMean, kCls, kLast };  // the values are those of GGUF's pooling_type
const char* pooling_name(Pooling pooling);

struct PoolingConfig {
  Pooling kind = Pooling::kNone;     // none: the model writes text
  bool normalise = true;             // to a length of 1
  std::vector<uint32_t> dense_dims;  // outputs of the matrices after the pooling, at most two
  // The number of scores of a text (or of two) instead of an embedding; 0: none. has_class_dense: a matrix and tanh
  // come before, or with has_class_norm the model's activation and a LayerNorm.
  uint32_t n_classes = 0;
  bool has_class_dense = false, has_class_norm = false;
};

// The rows that a picture's rows see in the text model, besides those before them.
enum class PictureSight : uint8_t {
  kNothing,
  kTile,          // the rows of their tile
  kTileInWindow,  // the same in layers that slide, not beyond the window
  kPrompt,        // the whole prompt, whose other rows see it too
};
// The numbers of a matrix with limits: TensorId::kQLimits.
inline constexpr uint32_t kLimitCount = 4;

// A vision tower, which is read as a model of its own (tower.h): its rows are patches.
struct TowerConfig {
  uint32_t patch_values = 0;   // of a patch
  uint32_t block = 1;          // patches along each axis of a token
  uint32_t image_dim = 0;      // of the model that reads it
  uint32_t projector_dim = 0;  // between both
  float projector_eps = 0;     // of the norm there
  uint32_t window = 0;         // tokens along each axis of a window, of layers that slide; 0: none does
  PictureSight sight = PictureSight::kNothing;
  bool has_class_row = false;       // a class token comes after the patches of a tile
  uint32_t table_side = 0;          // of a square table of learned positions, which is ctx_len long
  std::vector<uint32_t> deepstack;  // layers with mergers of their own after them
  bool has_limits = false;          // of what matrices read and make
  bool is_standardised = false;     // a token's row, by a mean and a scale of each column
};

// Layers that follow each other: [first, end).
struct LayerRange {
  uint32_t first = 0, end = UINT32_MAX;
  bool has(uint32_t layer) const { return first <= layer && layer < end; }
  bool operator==(const LayerRange&) const = default;
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
  LayerRange part;  // the layers that are loaded here; the others lie on other devices
  // Further layers that predict the token after the next one: 0, or 1 if the checkpoint has its tensors and the family
  // reads them. n_layers does not count it, and lists of one entry a layer have none for it.
  uint32_t next_layers = 0;
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
  // Numbers of the layers that slide, if they differ from head_dim and n_kv_heads; 0: they do not.
  uint32_t sliding_head_dim = 0, sliding_kv_heads = 0;
  bool values_are_keys = false;  // in layers that do not slide v is what k is before its norm and rotation
  // The last so many layers have no keys and values: they read those of the last layer before them that slides, or does
  // not, as they do.
  uint32_t shared_kv_layers = 0;
  uint32_t shared_ffn_dim = 0;   // feed-forward dimension of these layers; 0: ffn_dim
  bool has_qk_norm = true;       // in families that normalise q and k; false: this model does not
  bool attention_sinks = false;  // a learned logit of each head joins the denominator of its softmax
  float attention_softcap = 0;   // c: attention logits are c * tanh(logits / c); 0: none
  QueryScaling query_scaling;
  // Numbers that files give; what a family always does is in its forward pass.
  float embedding_scale = 1;  // of the embedding table's rows
  float residual_scale = 1;   // of what a branch adds to the residual
  float logits_scale = 1;
  float final_softcap = 0;  // c: logits, scaled, are c * tanh(logits / c); 0: none
  bool tied_embeddings = false;
  // config.json asks for biases: of q, k, v and attention's output; of the feed-forward layer.
  bool attention_bias = false, mlp_bias = false;
  ActivationFn activation = ActivationFn::kSilu;
  float swiglu_limit = 0;  // of gates that clamp (gpt-oss); 0: none
  RopeConfig rope;
  std::vector<float>
      xielu;  // GGUF: of each layer the numbers of its activation (xielu.h); empty: tensors, or none
  RopeConfig local_rope;  // of layers that slide, in families that rotate them otherwise; rotary_dim 0: none
  std::vector<uint8_t> is_unrotated;  // per layer, 1: its q and k do not rotate; empty: all do
  MoeConfig moe;
  LayerInputConfig layer_input;
  uint32_t laurel_rank = 0;            // of the low-rank branch beside attention (LAuReL, Gemma 3n)
  std::vector<float> gate_deviations;  // per layer, as graph::Sparsify takes them; empty: all keep all
  RecurrentConfig recurrent;
  MlaConfig mla;
  PoolingConfig pooling;
  TowerConfig tower;
  bool bidirectional = false;  // tokens see the tokens after them too
  uint32_t n_token_types = 0;  // of learned embeddings beside those of positions; 0: positions rotate
  // Per layer, 1: it is a feed-forward layer or a mixture of experts, and the others have neither; empty: every layer
  // has one.
  std::vector<uint8_t> is_feed_forward;
};

// True if all layers are loaded here; if the first or the last ones are.
inline bool is_whole(const ModelConfig& config) {
  return config.part.first == 0 && config.part.end >= config.n_layers;
}
inline bool begins_model(const ModelConfig& config) { return config.part.first == 0; }
inline bool ends_model(const ModelConfig& config) { return config.part.end >= config.n_layers; }

// True for layer n_layers if next_layers is 1. It attends to everything, with a cache of its own, and feeds forward as
// the family's layers do, by experts if there are any. Every function below answers for it in this way. Fields about
// "all layers" do not speak of it.
bool is_next_layer(const ModelConfig& config, uint32_t layer);

// True if layer `layer` sees only the sliding window.
bool is_sliding_layer(const ModelConfig& config, uint32_t layer);

// True if q and k of layer `layer` rotate.
bool is_rotated_layer(const ModelConfig& config, uint32_t layer);
// True if layer `layer` has attention or a recurrence, and a feed-forward layer or experts.
bool has_mixer(const ModelConfig& config, uint32_t layer);
bool has_feed_forward(const ModelConfig& config, uint32_t layer);
// True if layer `layer` has experts.
bool is_moe_layer(const ModelConfig& config, uint32_t layer);
// True if layer `layer` has a recurrent state.
bool is_recurrent_layer(const ModelConfig& config, uint32_t layer);

// Numbers that layers may have of their own.
uint32_t head_dim_of(const ModelConfig& config, uint32_t layer);
uint32_t kv_heads_of(const ModelConfig& config, uint32_t layer);
uint32_t ffn_dim_of(const ModelConfig& config, uint32_t layer);
float gate_deviations_of(const ModelConfig& config, uint32_t layer);
// Whose keys and values attention of layer `layer` reads: its own, or those of an earlier layer.
uint32_t cache_layer(const ModelConfig& config, uint32_t layer);
// The number of patches that a vision tower merges into a token.
inline uint32_t merged_patches(const ModelConfig& config) { return config.tower.block * config.tower.block; }
// The dimension of experts' inputs and outputs.
uint32_t expert_row_dim(const ModelConfig& config);
// True if layer `layer` has a cache of keys and values.
bool has_cache(const ModelConfig& config, uint32_t layer);
// True if all layers have one, of the same shape.
bool has_equal_caches(const ModelConfig& config);
// True if the model gives vectors of texts, not texts.
bool is_embedding_model(const ModelConfig& config);
// True if positions after ctx_len cannot be computed: they are learned, or rotate as the length of the text says.
bool ends_at_ctx_len(const ModelConfig& config);
// Numbers that the model gives for a token: its vocabulary's logits, or those of an embedding or of classes.
uint32_t output_dim(const ModelConfig& config);

// 1 / sqrt(head_dim)
float usual_attention_scale(const ModelConfig& config);

// Reads and checks every number. Errors name the field, what it holds and what is allowed, or the architecture and
// the ones this build knows. A field that changes the maths and is not understood is an error.
Result<ModelConfig> read_config(const Checkpoint& checkpoint);

// The number of unused layers of a Hugging Face folder, after those that its config.json counts.
uint32_t layers_left_out(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace doppler::formats
