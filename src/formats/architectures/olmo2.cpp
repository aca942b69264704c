// OLMo 2 and 3: norms stand after the branches, and normalise all of q and of k; OLMo 3 has layers that slide, which
// rotate without the scaling of the others. Facts: transformers' Olmo2Config and Olmo3Config; llama.cpp's
// LLM_ARCH_OLMO2, which is for both.
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace olmo2 {
namespace {

using enum TensorId;

constexpr uint32_t kPattern = 4;  // every fourth layer sees everything

constexpr std::string_view kGguf[] = {"olmo2"};
constexpr HuggingFaceType kTypes[] = {{"olmo2", WindowRule::kNone}, {"olmo3", WindowRule::kPattern}};
constexpr FieldDefault kDefaults[] = {{"sliding_window", 4096, true}};
constexpr TensorRow kOwnTensors[] = {{.id = kQNorm,
                                      .gguf = "attn_q_norm",
                                      .huggingface = "self_attn.q_norm",
                                      .shape = {Dim::kQRows},
                                      .is_norm = true},
                                     {.id = kKNorm,
                                      .gguf = "attn_k_norm",
                                      .huggingface = "self_attn.k_norm",
                                      .shape = {Dim::kKvRows},
                                      .is_norm = true}};

void set_sliding_rope(ModelConfig& config, double theta) {
  if (config.sliding_window == 0) return;
  config.local_rope = {.theta = theta, .rotary_dim = config.rope.rotary_dim, .pairing = config.rope.pairing};
}

Result<void> read(const Json&, ModelConfig& config) {
  set_sliding_rope(config, config.rope.theta);
  return {};
}

Result<void> read_keys(const GgufKeys& keys, ModelConfig& config) {
  DP_TRY(const double theta, keys.number("rope.freq_base_swa", config.rope.theta));
  set_sliding_rope(config, theta);
  return {};
}

constexpr Architecture kRow = {
    .family = "olmo2",
    .window_pattern = kPattern,
    .layer = kPostNormLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .window = WindowRule::kPattern,
             .read = read_keys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read},
};

}  // namespace
}  // namespace olmo2

constinit const Architecture rows::olmo2 = olmo2::kRow;

}  // namespace doppler::formats
