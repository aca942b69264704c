// GLM 4 (0414), dense: norms around the branches, half of each head rotated as neighbours, biases of q, k and v, gates
// and ups as one matrix. The text model of GLM 4V is the same with positions on several axes. Facts: transformers'
// Glm4Config and Glm4vTextConfig; llama.cpp's LLM_ARCH_GLM4.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace glm4 {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"glm4"};
constexpr HuggingFaceType kTypes[] = {{"glm4", WindowRule::kNone}, {"glm4v_text", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 128, true},
                                      {"partial_rotary_factor", 0.5, false},
                                      {"max_position_embeddings", 131072, true}};
constexpr TensorRow kOwnTensors[] = {{.id = kPostAttentionNorm,
                                      .gguf = "post_attention_norm",
                                      .huggingface = "post_self_attn_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true},
                                     {.id = kPostFfnNorm,
                                      .gguf = "post_ffw_norm",
                                      .huggingface = "post_mlp_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true}};

constexpr Architecture kRow = {
    .family = "glm4",
    .biases = Biases::kQkvKey,
    .layer = kNormsAroundLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kGptJ, .gate_up = "ffn_up"},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kGptJ, .defaults = kDefaults},
};

}  // namespace
}  // namespace glm4

constinit const Architecture rows::glm4 = glm4::kRow;

}  // namespace doppler::formats
