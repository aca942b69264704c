// ERNIE 4.5, dense: Llama that rotates neighbours, in both kinds of file. Facts: transformers' Ernie4_5Config;
// llama.cpp's LLM_ARCH_ERNIE4_5.
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace ernie4_5 {
namespace {

constexpr std::string_view kGguf[] = {"ernie4_5"};
constexpr HuggingFaceType kTypes[] = {{"ernie4_5", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"rope_theta", 500000, false},
                                      {"max_position_embeddings", 131072, true}};

constexpr Architecture kRow = {
    .family = "ernie4_5",
    .layer = kPreNormLayer,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kGptJ},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kGptJ,
                    .tied_embeddings = true,
                    .defaults = kDefaults},
};

}  // namespace
}  // namespace ernie4_5

constinit const Architecture rows::ernie4_5 = ernie4_5::kRow;

}  // namespace doppler::formats
