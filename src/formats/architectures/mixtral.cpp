// Mixtral (Jiang et al. 2024): Llama with a mixture of experts in each layer. Facts: transformers' MixtralConfig;
// llama.cpp's LLM_ARCH_LLAMA, which is also Mixtral's: a GGUF file is read by Llama's row.
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace mixtral {
namespace {

using enum TensorId;
using enum Dim;

constexpr std::string_view kGguf[] = {"llama"};
constexpr HuggingFaceType kTypes[] = {{"mixtral", WindowRule::kAllLayers}};
constexpr FieldDefault kDefaults[] = {
    {"num_local_experts", 8, true},   {"num_experts_per_tok", 2, true},
    {"num_key_value_heads", 8, true}, {"max_position_embeddings", 131072, true},
    {"rms_norm_eps", 1e-5, false},    {"rope_theta", 1e6, false}};
constexpr TensorRow kTensors[] = {
    {kRouter, "ffn_gate_inp", "block_sparse_moe.gate", {kExperts, kHidden}},
    {kExpertGate, "ffn_gate_exps", "block_sparse_moe.experts.w1", {kExperts, kExpertFfn, kHidden}},
    {kExpertUp, "ffn_up_exps", "block_sparse_moe.experts.w3", {kExperts, kExpertFfn, kHidden}},
    {kExpertDown, "ffn_down_exps", "block_sparse_moe.experts.w2", {kExperts, kHidden, kExpertFfn}},
};

Result<void> read(const Json& json, ModelConfig& config) {
  config.moe.norm_weights = true;
  return read_huggingface_moe(json, config);
}

constexpr Architecture kRow = {
    .family = "mixtral",
    .layer = kPreNormMoeLayer,
    .own_tensors = kTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kGptJ,
             .window = WindowRule::kAllLayers,
             .write = gguf_moe_fields},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kHuggingFaceMoeKeys},
};

}  // namespace
}  // namespace mixtral

constinit const Architecture rows::mixtral = mixtral::kRow;

}  // namespace doppler::formats
