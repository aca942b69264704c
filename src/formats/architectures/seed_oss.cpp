// Seed-OSS: Llama with biases of q, k and v. Facts: transformers' SeedOssConfig; llama.cpp's LLM_ARCH_SEED_OSS, whose
// name for the norm before the feed-forward layer is post_attention_norm.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace seed_oss {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"seed_oss"};
constexpr HuggingFaceType kTypes[] = {{"seed_oss", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 128, true}, {"max_position_embeddings", 524288, true}};
constexpr TensorRow kOwnTensors[] = {{.id = kFfnNorm,
                                      .gguf = "post_attention_norm",
                                      .huggingface = "post_attention_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true}};

constexpr Architecture kRow = {
    .family = "seed_oss",
    .biases = Biases::kQkvKey,
    .layer = kPreNormLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .defaults = kDefaults},
};

}  // namespace
}  // namespace seed_oss

constinit const Architecture rows::seed_oss = seed_oss::kRow;

}  // namespace doppler::formats
