// What a model family is: which architectures it answers for, which weights it loads, and its forward pass, recorded
// line by line. Add a family = one file here and one row in family.cpp.
// Read next: llama.cpp, the plainest one.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "formats/gguf/gguf.h"
#include "model/config.h"

namespace doppler::model {

struct HuggingFaceType {
  std::string_view model_type;
  bool has_window;  // config.json's sliding_window means what it says
};

struct Family {
  using AddGguf = Result<void> (*)(ModelConfig& config, const formats::GgufFile& gguf);
  std::string_view name;
  std::span<const std::string_view> gguf_architectures;
  std::span<const HuggingFaceType> huggingface_types;
  AddGguf add_gguf = nullptr;  // numbers that only this family's GGUF files have; null: none
  bool gguf_turns_neighbours =
      true;  // GGUF files rotate pairs (2i, 2i+1): their q and k rows are permuted for it

  bool config_has_window(std::string_view model_type) const;
};

// Errors list the architectures this build knows.
Result<const Family*> find_family_gguf(std::string_view architecture);
Result<const Family*> find_family_huggingface(std::string_view model_type);
const Family& family_of(const ModelConfig& config);

}  // namespace doppler::model
