#include "model/families/family.h"

#include "base/text.h"
#include "model/config_sources.h"

namespace doppler::model {
namespace {

constexpr std::string_view kLlamaGguf[] = {"llama"};
constexpr HuggingFaceType kLlamaTypes[] = {{"llama", false}, {"mistral", true}};
constexpr std::string_view kGemma3Gguf[] = {"gemma3"};
constexpr HuggingFaceType kGemma3Types[] = {{"gemma3_text", true}, {"gemma3", true}};

constexpr Family kFamilies[] = {
    {"llama", kLlamaGguf, kLlamaTypes},
    {"gemma3", kGemma3Gguf, kGemma3Types, add_gemma3_gguf, /*gguf_turns_neighbours=*/false},
};

std::string known_names(bool gguf) {
  std::string names;
  const auto add = [&](std::string_view name) { names += (names.empty() ? "" : ", ") + std::string(name); };
  for (const Family& family : kFamilies) {
    if (gguf) {
      for (const std::string_view name : family.gguf_architectures) add(name);
    } else {
      for (const HuggingFaceType& type : family.huggingface_types) add(type.model_type);
    }
  }
  return names;
}

}  // namespace

bool Family::config_has_window(std::string_view model_type) const {
  for (const HuggingFaceType& type : huggingface_types) {
    if (type.model_type == model_type) return type.has_window;
  }
  return false;
}

Result<const Family*> find_family_gguf(std::string_view architecture) {
  for (const Family& family : kFamilies) {
    for (const std::string_view name : family.gguf_architectures) {
      if (name == architecture) return &family;
    }
  }
  return fail(ErrorKind::kUnsupported, "Architecture \"%s\" is not supported; supported in GGUF files: %s.",
              printable(architecture).c_str(), known_names(true).c_str());
}

Result<const Family*> find_family_huggingface(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    for (const HuggingFaceType& type : family.huggingface_types) {
      if (type.model_type == model_type) return &family;
    }
  }
  return fail(ErrorKind::kUnsupported,
              "Model type \"%s\" is not supported; supported in Hugging Face folders: %s.",
              printable(model_type).c_str(), known_names(false).c_str());
}

const Family& family_of(const ModelConfig& config) {
  for (const Family& family : kFamilies) {
    if (family.name == config.family) return family;
  }
  return kFamilies[0];  // read_config() only gives names of this table
}

}  // namespace doppler::model
