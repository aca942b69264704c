// The facts about a family's files, in one row: names of architectures, keys, tensors and shapes in GGUF and in Hugging
// Face folders. Loader, converter, synthetic models, `doppler inspect` and docs/reference/models.md read the same row.
// To add a family: a file with its row beside llama.cpp, and its word in family_list.h.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/config.h"
#include "formats/tensor_id.h"

namespace doppler::formats {

class GgufKeys;

// A field without a default: a row that does not set it does not compile.
template <typename T>
struct Required {
  constexpr Required(T given) : value(given) {}  // not explicit: rows write the value itself
  T value;
};

// Sizes that shapes are made of.
enum class Dim : uint8_t {
  kHidden,
  kQRows,
  kKvRows,
  kFfn,
  kVocab,
  kHeadDim,
  kHeads,
  kExperts,
  kExpertFfn,
  kExpertRow,  // of what experts read and leave
  kSharedFfn,
  kOne,
  kConvKernel,
  kConvChannels,  // of the convolution of layers with a recurrent state
  kConvInRows,    // these and the two gates of a short convolution
  kKeyHeads,      // of a recurrence
  kValueHeads,
  kValueRows,
  kValueDim,
  kDense1Rows,  // outputs of the matrices after a pooling
  kDense2Rows,
  kPositionCount,
  kTypeCount,
  kClassCount,
  kMambaInRows,  // gate, convolution's channels and a dt a head
  kLatentQRows,  // these and the others of multi-head latent attention (MlaConfig)
  kQRank,
  kKvRank,
  kLatentRows,
  kNopeDim,
  kLatentValueDim,
  kLatentValueRows,
  kLayerInput,      // embeddings of a layer
  kAllLayerInputs,  // of all layers
  kLayerInputVocab,
  kStreams,  // of AltUp
  kStreamPairs,
  kLaurelRank,
  kTwoHidden,
  kPatchValues,  // of a vision tower, as those that follow
  kMerged,       // a token's patches in one row
  kImageDim,     // of the model that reads what the tower makes
  kProjector,    // between a token's patches and that
  kLimits,       // of a matrix
};
// In layer `layer`, if layers differ.
uint64_t extent(Dim dim, const ModelConfig& config, uint32_t layer);

// Outermost first: {kFfn, kHidden} is a matrix of ffn_dim rows. One to four dimensions.
class Shape {
 public:
  constexpr Shape(std::initializer_list<Dim> dims) : count_(dims.size()) {
    size_t next = 0;
    for (const Dim dim : dims) dims_[next++] = dim;
  }
  constexpr size_t size() const { return count_; }
  constexpr Dim operator[](size_t i) const { return dims_[i]; }
  std::vector<uint64_t> extents(const ModelConfig& config, uint32_t layer) const;

 private:
  std::array<Dim, 4> dims_{};
  size_t count_;
};

struct TensorRow {
  TensorId id;
  std::string_view gguf;  // after "" or "blk.N.", before the suffix; a "#" stands for the layer's number
  // After "model." or "model.layers.N."; a "#" likewise. lm_head has no prefix. A name that begins with "/" has only
  // what comes before that prefix.
  std::string_view huggingface;
  Shape shape;           // files may leave out dimensions of one
  bool is_norm = false;  // or another vector that is not multiplied with
  std::string_view gguf_suffix = ".weight", huggingface_suffix = ".weight";
  bool is_vector = false;        // numbers that kernels read in f32, whatever the shape; without an offset
  bool is_log = false;           // Hugging Face stores log(-w)
  uint32_t part = 0, parts = 1;  // of each head's rows, if a tensor holds several matrices head by head
  // If GGUF's tensor holds several matrices, one after another: [gguf_parts, n, k].
  uint32_t gguf_part = 0, gguf_parts = 1;
  Dim gguf_groups = Dim::kOne;  // for a vector that GGUF has as a matrix: the number of its rows
};

// The layers that the sliding window of a file is for.
enum class WindowRule : uint8_t {
  kNone,         // none: config.json's number means nothing, a GGUF file must not have one
  kAllLayers,    // all
  kPattern,      // all but every n-th: sliding_window_pattern, or layer_types
  kUpperLayers,  // those from max_window_layers on where use_sliding_window is true, or layer_types
};

// The matrices that have biases. A checkpoint's biases of further matrices are used too.
enum class Biases : uint8_t {
  kNone,
  kQkv,         // of q, k and v, always
  kQkvKey,      // of q, k and v, if config.json's attention_bias asks for them
  kConfigKeys,  // those that config.json's attention_bias and mlp_bias ask for
};

// A metadata field of a GGUF file, whose key follows "<architecture>.".
struct GgufField {
  std::string_view key;
  std::variant<uint32_t, float, bool, std::string, std::vector<int32_t>, std::vector<float>> value;
  bool has_prefix = true;
};

// True if positions have several axes.
inline bool has_axes(const RopeConfig& rope) { return rope.sections != std::array<uint32_t, 3>{}; }

struct GgufRow {
  std::span<const std::string_view>
      architectures;  // also the prefix of the keys; the first is what is written, of models with experts the last
  Required<RopePairing> pairing;  // that the rows of q and k are ordered for
  WindowRule window = WindowRule::kNone;
  // The tensors that hold q, k and v, and gates and ups, if files of the architecture have them as one; empty: apart.
  std::string_view qkv = {}, gate_up = {};
  // Yarn's attention factor is written as the two numbers that it is a ratio of: the key is mscale_all_dim times this.
  // 0: the key is mscale_all_dim.
  float yarn_log_multiplier = 0;
  // The factor of attention's logits, which no key says.
  float (*attention_scale)(const ModelConfig& config) = usual_attention_scale;
  // A file without norms of q and k is of a model without them.
  bool optional_qk_norm = false;
  // Value heads of gated delta nets lie by their place under a key head, not by key head.
  bool tiles_value_heads = false;
  // attention.head_count_kv is a list of a count a layer, 0 for those with a recurrent state.
  bool kv_heads_by_layer = false;
  // Some layers have only a feed-forward branch: feed_forward_length is a list, too, with 0 for the others, which have
  // none.
  bool ffn_by_layer = false;
  // Counts of kv heads, feed-forward dimensions and the window's pattern may be lists of one a layer, which `read` and
  // `write` have to say more of; the general reader takes those of the last layer, the first and all.
  bool has_lists = false;
  // Reads the architecture's own keys, after the general ones; writes those keys for a file. Both or none;
  // gguf_metadata.cpp must compare what is read.
  Result<void> (*read)(const GgufKeys& keys, ModelConfig& config) = nullptr;
  std::vector<GgufField> (*write)(const ModelConfig& config) = nullptr;
  std::span<const std::string_view> keys = {};  // that change the maths and that `read` understands
  std::string_view norm_epsilon = "attention.layer_norm_rms_epsilon";
  std::string_view layers = "blk.";   // what stands before the number of a layer
  bool interleaved_sections = false;  // of RopeConfig, which no key says
  std::string_view of_axes =
      {};  // the architecture of models with positions on several axes; empty: the same

  // That the rows of q and k are ordered for; llama.cpp's converter changes their order if there are axes (GLM 4V).
  RopePairing pairing_of(const RopeConfig& rope) const {
    return has_axes(rope) ? RopePairing::kNeox : pairing.value;
  }
};

struct HuggingFaceType {
  std::string_view model_type;
  WindowRule window;
};

// transformers' default of a field, if it is not the usual one: published files leave out fields that equal it.
struct FieldDefault {
  const char* key;
  double value;
  bool is_count;
};

struct HuggingFaceRow {
  std::span<const HuggingFaceType> model_types;
  Required<RopePairing> pairing;
  float norm_offset = 0;  // norms are stored as w - norm_offset
  std::string_view activation = "hidden_act";
  bool tied_embeddings = false;    // without tie_word_embeddings
  bool query_scalar = false;       // query_pre_attn_scalar gives attention's scale; elsewhere it is refused
  bool attention_softcap = false;  // attn_logit_softcapping is understood; elsewhere it is refused
  bool latent_attention = false;   // kv_lora_rank and its like say what is cached (mla_keys.h)
  std::span<const FieldDefault> defaults = {};
  // The name in layer_types of layers with a recurrent state; empty: there are none.
  std::string_view recurrent_type = {};
  // Reads the architecture's own fields, after the general ones.
  Result<void> (*read)(const Json& json, ModelConfig& config) = nullptr;
  std::span<const std::string_view> keys = {};  // that change the maths and that `read` understands
  std::string_view norm_epsilon = "rms_norm_eps", window = "sliding_window";
  // The begin of tensors' names, in checkpoints that have it, and the word before the number of a layer.
  std::string_view prefix = "model.", layers = "layers.";
};

struct Architecture {
  std::string_view family;
  ActivationFn activation = ActivationFn::kSilu;  // if config.json names none; GGUF never does
  Biases biases = Biases::kNone;
  // WindowRule::kPattern, if the file gives no number: one layer in so many sees everything.
  uint32_t window_pattern = 0;
  // For layers that slide, if a file gives none; 0: they rotate as the others do.
  double sliding_rope_theta = 0;
  std::span<const TensorId> layer;       // the tensors of a layer, in the order of the forward pass
  std::span<const TensorId> model = {};  // outside the layers, after the embedding
  bool has_final_norm = true;
  bool has_first_norm = true;  // before the attention of the first layer
  bool bidirectional = false;  // an encoder, which gives vectors whatever else its files say
  bool rotates = true;         // false: positions have learned embeddings
  // Embeddings of fewer dimensions are the first ones of an embedding (Kusupati et al. 2022).
  bool truncatable = false;
  std::span<const TensorId> recurrent_layer = {};  // the same of a layer with a recurrent state
  // Files may have one more layer of `layer` at the end, which predicts the token after the next one (next_layer.h).
  bool has_next_layer = false;
  std::span<const TensorRow> own_tensors = {};  // in place of the usual rows (tensor_names.cpp)
  GgufRow gguf;
  HuggingFaceRow huggingface;
};

std::span<const Architecture* const> all_architectures();

// Errors list the architectures this build knows.
Result<const Architecture*> find_architecture_gguf(std::string_view architecture);
Result<const Architecture*> find_architecture_huggingface(std::string_view model_type);
// The row that `config` was read by.
const Architecture& architecture_of(const ModelConfig& config);

// GGUF's name for the architecture of the model.
std::string_view gguf_architecture(const ModelConfig& config);

// True if layer `layer` has the tensor. Those of mixtures of experts stand in place of the feed-forward layer's, and
// only a next layer (config.h) has those of is_of_next_layer().
bool has_tensor(const ModelConfig& config, TensorId id, uint32_t layer);

// True for the tensors that only a next layer has.
bool is_of_next_layer(TensorId id);

// The usual row of a tensor or, if it has one, the architecture's own.
const TensorRow& tensor_row(const Architecture& architecture, TensorId id);

// A tensor of a model: its row, and its layer (0 outside the layers).
struct PlacedTensor {
  const TensorRow* row;
  uint32_t layer;
};
// All tensors but biases, in the order in which a forward pass touches them: the output matrix (absent if embeddings
// are tied) after the layers, and those of a next layer at the end.
std::vector<PlacedTensor> tensors_of(const ModelConfig& config);

// True if the tensor `id` must have a bias in this model.
bool must_have_bias(const ModelConfig& config, TensorId id);

// The number of heads whose rows the tensor stacks, if a rotation depends on their order; 0: none does.
uint32_t rotated_heads(const ModelConfig& config, TensorId id);

}  // namespace doppler::formats
