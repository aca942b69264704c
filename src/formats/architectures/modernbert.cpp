// ModernBERT: an encoder with rotations, LayerNorm without biases before the branches (but before the first attention),
// gates, and layers that mostly see a window to both sides. Facts: transformers' ModernBertConfig and ModernBertModel;
// llama.cpp's LLM_ARCH_MODERN_BERT.
#include <algorithm>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace modernbert {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 3;  // the first of every three layers sees everything
constexpr double kLocalTheta = 10000.0;

constexpr std::string_view kGguf[] = {"modern-bert"};
constexpr HuggingFaceType kTypes[] = {{"modernbert", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {
    {"max_position_embeddings", 8192, true}, {"norm_eps", 1e-5, false}, {"local_attention", 128, true}};
constexpr std::string_view kFields[] = {"position_embedding_type"};  // which the model does not read
constexpr TensorId kBeforeLayers[] = {kEmbeddingNorm};
constexpr TensorRow kOwnTensors[] = {
    {kEmbedding, "token_embd", "embeddings.tok_embeddings", {Dim::kVocab, Dim::kHidden}},
    {kEmbeddingNorm, "token_embd_norm", "embeddings.norm", {Dim::kHidden}, /*is_norm=*/true},
    {kAttentionNorm, "attn_norm", "attn_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kQ, "attn_q", "attn.Wq", {Dim::kQRows, Dim::kHidden}},
    {kK, "attn_k", "attn.Wk", {Dim::kKvRows, Dim::kHidden}},
    {kV, "attn_v", "attn.Wv", {Dim::kKvRows, Dim::kHidden}},
    {kAttentionOut, "attn_output", "attn.Wo", {Dim::kHidden, Dim::kQRows}},
    {kFfnNorm, "ffn_norm", "mlp_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kGate, "ffn_gate", "mlp.Wi_gate", {Dim::kFfn, Dim::kHidden}},
    {kUp, "ffn_up", "mlp.Wi_up", {Dim::kFfn, Dim::kHidden}},
    {kDown, "ffn_down", "mlp.Wo", {Dim::kHidden, Dim::kFfn}},
    {kFinalNorm, "output_norm", "final_norm", {Dim::kHidden}, /*is_norm=*/true},
    {kClassDense, "cls", "head.dense", {Dim::kHidden, Dim::kHidden}}};

void set_windows(ModelConfig& config, uint32_t pattern) {
  config.is_sliding.resize(config.n_layers);
  for (size_t i = 0; i < config.is_sliding.size(); ++i) config.is_sliding[i] = i % pattern != 0;
}

Result<void> read(const Json& json, ModelConfig& config) {
  DP_CHECK(require_truth(json, "norm_bias", false));
  DP_TRY(config.rope.theta, number_or(json, "global_rope_theta", config.rope.theta));
  DP_TRY(config.local_rope.theta, number_or(json, "local_rope_theta", config.local_rope.theta));
  DP_TRY(const auto pattern, get_count(json, "global_attn_every_n_layers"));
  const Json* types = find(json, "layer_types");
  if (types && !types->is_null()) return {};
  if (pattern.value_or(kPattern) == 0) {
    return fail(ErrorKind::kInvalidInput, "Field \"global_attn_every_n_layers\" is 0; allowed is 1 or more.");
  }
  DP_TRY(const auto window, get_count(json, "local_attention"));
  config.sliding_window = window.value_or(0);
  set_windows(config, pattern.value_or(kPattern));
  return {};
}

Result<void> read_keys(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const auto window, keys.count("attention.sliding_window"));
  config.sliding_window = window.value_or(0);
  const std::vector<uint8_t> flags = keys.flags("attention.sliding_window_pattern");
  if (!flags.empty()) return {};
  DP_TRY(const auto pattern, keys.count("attention.sliding_window_pattern"));
  set_windows(config, std::max(1u, pattern.value_or(kPattern)));
  return {};
}

constexpr Architecture kRow = {
    .family = "modernbert",
    .activation = ActivationFn::kGeluErf,
    .window_pattern = kPattern,
    .sliding_rope_theta = kLocalTheta,
    .layer = kPreNormLayer,
    .model = kBeforeLayers,
    .has_first_norm = false,
    .bidirectional = true,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .qkv = "attn_qkv",
             .gate_up = "ffn_up",
             .read = read_keys,
             .norm_epsilon = "attention.layer_norm_epsilon"},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields,
                    .norm_epsilon = "norm_eps",
                    .window = "local_attention"},
};

}  // namespace
}  // namespace modernbert

constinit const Architecture rows::modernbert = modernbert::kRow;

}  // namespace doppler::formats
