// Hunyuan V1, dense: each head of q and k is normalised behind its rotation. Facts: transformers' HunYuanDenseV1Config;
// llama.cpp's LLM_ARCH_HUNYUAN_DENSE.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"hunyuan-dense"};
constexpr HuggingFaceType kTypes[] = {{"hunyuan_v1_dense", WindowRule::kNone}};
constexpr std::string_view kFields[] = {"use_qk_norm"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,       kK,    kV,  kQNorm, kKNorm,
                               kAttentionOut,  kFfnNorm, kGate, kUp, kDown};
constexpr TensorRow kOwnTensors[] = {{.id = kQNorm,
                                      .gguf = "attn_q_norm",
                                      .huggingface = "self_attn.query_layernorm",
                                      .shape = {Dim::kHeadDim},
                                      .is_norm = true},
                                     {.id = kKNorm,
                                      .gguf = "attn_k_norm",
                                      .huggingface = "self_attn.key_layernorm",
                                      .shape = {Dim::kHeadDim},
                                      .is_norm = true}};

Result<void> read(const Json& json, ModelConfig&) { return require_truth(json, "use_qk_norm", true); }

}  // namespace

constinit const Architecture kHunyuanV1Row = {
    .family = "hunyuan_v1",
    .biases = Biases::kConfigKeys,
    .layer = kLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .read = read, .keys = kFields},
};

}  // namespace doppler::formats
