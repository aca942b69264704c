// Apertus: each head of q and k is normalised before its rotation, and the feed-forward layer has no gates but xIELU
// (xielu.h). Facts: transformers' ApertusConfig; llama.cpp's LLM_ARCH_APERTUS.
#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/rows.h"
#include "formats/architectures/xielu.h"

namespace doppler::formats {
namespace apertus {
namespace {

using enum TensorId;

constexpr std::string_view kGguf[] = {"apertus"};
constexpr HuggingFaceType kTypes[] = {{"apertus", WindowRule::kNone}};
constexpr std::string_view kFields[] = {"hidden_act", "qk_norm"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,       kK,  kV,   kQNorm, kKNorm,
                               kAttentionOut,  kFfnNorm, kUp, kDown};
constexpr TensorRow kOwnTensors[] = {{.id = kAttentionNorm,
                                      .gguf = "attn_norm",
                                      .huggingface = "attention_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true},
                                     {.id = kFfnNorm,
                                      .gguf = "ffn_norm",
                                      .huggingface = "feedforward_layernorm",
                                      .shape = {Dim::kHidden},
                                      .is_norm = true}};

Result<void> read(const Json& json, ModelConfig&) {
  DP_CHECK(require_truth(json, "qk_norm", true));
  DP_TRY(const auto act, get_string(json, "hidden_act"));
  if (act.value_or("xielu") == "xielu") return {};
  return fail(ErrorKind::kUnsupported,
              "Activation \"%s\" is not supported in models of type \"apertus\"; xielu is.",
              printable(*act).c_str());
}

// "xielu" and a part.
std::string key_of(const char* part) { return std::string("xielu") + part; }

Result<void> read_keys(const GgufKeys& keys, ModelConfig& config) {
  config.xielu.resize(config.n_layers * kXieluParts.size());
  for (size_t part = 0; part < kXieluParts.size(); ++part) {
    const std::string key = key_of(kXieluParts[part]);
    DP_TRY(const std::vector<double> numbers, keys.global_numbers(key.c_str()));
    if (numbers.size() != config.n_layers) {
      return fail(ErrorKind::kInvalidInput,
                  "Key \"%s\" has %zu numbers; a model of %u layers has one a layer.", key.c_str(),
                  numbers.size(), config.n_layers);
    }
    for (size_t layer = 0; layer < numbers.size(); ++layer) {
      config.xielu[layer * kXieluParts.size() + part] = static_cast<float>(numbers[layer]);
    }
  }
  return {};
}

std::vector<GgufField> write_keys(const ModelConfig& config) {
  static const std::array<std::string, kXieluParts.size()> kKeys = {
      key_of(kXieluParts[0]), key_of(kXieluParts[1]), key_of(kXieluParts[2]), key_of(kXieluParts[3])};
  std::vector<GgufField> fields;
  for (size_t part = 0; part < kXieluParts.size(); ++part) {
    std::vector<float> numbers;
    for (size_t i = part; i < config.xielu.size(); i += kXieluParts.size())
      numbers.push_back(config.xielu[i]);
    fields.push_back({.key = kKeys[part], .value = std::move(numbers), .has_prefix = false});
  }
  return fields;
}

constexpr Architecture kRow = {
    .family = "apertus",
    .biases = Biases::kConfigKeys,
    .layer = kLayer,
    .own_tensors = kOwnTensors,
    .gguf = {.architectures = kGguf, .pairing = RopePairing::kNeox, .read = read_keys, .write = write_keys},
    .huggingface = {.model_types = kTypes, .pairing = RopePairing::kNeox, .read = read, .keys = kFields},
};

}  // namespace
}  // namespace apertus

constinit const Architecture rows::apertus = apertus::kRow;

}  // namespace doppler::formats
