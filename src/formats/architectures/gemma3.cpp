// The text model of Gemma 3. Layers slide or do not, with different rotations. Norms stand after the branches too;
// Hugging Face stores them as w - 1. The scale of attention need not follow from the head dimension. Facts:
// transformers' Gemma3TextConfig and Gemma3Config; llama.cpp's src/llama-model.cpp, LLM_ARCH_GEMMA3.
#include <cmath>

#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace gemma3 {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 6;  // every sixth layer sees everything
constexpr double kSlidingTheta = 10000.0;
constexpr uint32_t kLayers27B = 62;  // the one size whose scale follows from hidden_dim / n_heads

constexpr std::string_view kGguf[] = {"gemma3"};
constexpr HuggingFaceType kTypes[] = {{"gemma3_text", WindowRule::kPattern},
                                      {"gemma3", WindowRule::kPattern}};
constexpr std::string_view kEmbeddingGguf[] = {"gemma-embedding"};
constexpr HuggingFaceType kEmbeddingTypes[] = {{"gemma3_text, bidirectional", WindowRule::kPattern}};
constexpr std::string_view kEmbeddingFields[] = {"use_bidirectional_attention"};
constexpr FieldDefault kDefaults[] = {
    {"vocab_size", 262208, true},
    {"hidden_size", 2304, true},
    {"intermediate_size", 9216, true},
    {"num_hidden_layers", 26, true},
    {"num_attention_heads", 8, true},
    {"num_key_value_heads", 4, true},
    {"head_dim", 256, true},
    {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-6, false},
    {"rope_theta", 1e6, false},
    {"query_pre_attn_scalar", 256, false},
    {"sliding_window", 4096, true},
};
constexpr TensorId kLayer[] = {kAttentionNorm,     kQ,       kK,    kV,  kQNorm, kKNorm,      kAttentionOut,
                               kPostAttentionNorm, kFfnNorm, kGate, kUp, kDown,  kPostFfnNorm};
// Llama's name post_attention_layernorm means, in Gemma 3, the norm of attention's branch.
constexpr TensorRow kOwnTensors[] = {{.id = kFfnNorm,
                                      .gguf = "ffn_norm",
                                      .huggingface = "pre_feedforward_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true}};

float attention_scale(const ModelConfig& c) {
  if (c.n_layers != kLayers27B) return usual_attention_scale(c);
  return static_cast<float>(1 / std::sqrt(static_cast<double>(c.hidden_dim) / c.n_heads));
}

constexpr Architecture kGemma3Row = {
    .family = "gemma3",
    .activation = ActivationFn::kGeluTanh,
    .window_pattern = kPattern,
    .sliding_rope_theta = kSlidingTheta,
    .layer = kLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .attention_scale = attention_scale},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .query_scalar = true,
                    .attention_softcap = true,
                    .defaults = kDefaults},
};

// EmbeddingGemma is the same, but tokens also see the tokens after them, and a window counts both sides together. Facts
// besides: llama.cpp's LLM_ARCH_GEMMA_EMBEDDING.
constexpr Architecture kGemmaEmbeddingRow = {
    .family = "gemma_embedding",
    .activation = ActivationFn::kGeluTanh,
    .window_pattern = kPattern,
    .sliding_rope_theta = kSlidingTheta,
    .layer = kLayer,
    .bidirectional = true,
    .truncatable = true,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kEmbeddingGguf, .pairing = RopePairing::kNeox, .window = WindowRule::kPattern},
    .huggingface = {.model_types = kEmbeddingTypes,
                    .pairing = RopePairing::kNeox,
                    .norm_offset = 1.0f,
                    .activation = "hidden_activation",
                    .tied_embeddings = true,
                    .query_scalar = true,
                    .attention_softcap = true,
                    .defaults = kDefaults,
                    .keys = kEmbeddingFields},
};

}  // namespace
}  // namespace gemma3

constinit const Architecture rows::gemma3 = gemma3::kGemma3Row;
constinit const Architecture rows::gemma_embedding = gemma3::kGemmaEmbeddingRow;

}  // namespace doppler::formats
