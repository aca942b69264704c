// Qwen 3, dense: each head of q and k is normalised before its rotation, and there are no biases. Facts: transformers'
// Qwen3Config; llama.cpp's LLM_ARCH_QWEN3.
#include "base/json.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace qwen3 {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"qwen3", "qwen3vl"};
constexpr HuggingFaceType kTypes[] = {{"qwen3", WindowRule::kUpperLayers},
                                      {"qwen3_vl_text", WindowRule::kUpperLayers}};
constexpr FieldDefault kDefaults[] = {{"head_dim", 128, true},
                                      {"max_position_embeddings", 32768, true},
                                      {"sliding_window", 4096, true},
                                      {"max_window_layers", 28, true}};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,       kK,    kV,  kQNorm, kKNorm,
                               kAttentionOut,  kFfnNorm, kGate, kUp, kDown};
constexpr std::string_view kFields[] = {"use_qk_norm"};

Result<void> read(const Json& json, ModelConfig&) { return require_truth(json, "use_qk_norm", true); }

constexpr Architecture kRow = {
    .family = "qwen3",
    .layer = kLayer,
    .truncatable = true,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .interleaved_sections = true,
             .of_axes = "qwen3vl"},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kFields},
};

}  // namespace
}  // namespace qwen3

constinit const Architecture rows::qwen3 = qwen3::kRow;

}  // namespace doppler::formats
