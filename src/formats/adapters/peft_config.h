// adapter_config.json of a PEFT folder: the scale of each matrix, and requests that this reader refuses. The tensors
// say which matrices an adapter has, and their ranks. target_modules, exclude_modules and layers_to_transform chose
// these in training. Facts: peft's LoraConfig and get_pattern_key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "formats/adapters/module_pattern.h"

namespace doppler::formats {

struct PeftConfig {
  uint32_t rank = 8;
  double alpha = 8;
  std::vector<std::pair<ModulePattern, uint32_t>> rank_pattern;  // the first match counts
  std::vector<std::pair<ModulePattern, double>> alpha_pattern;
  bool uses_rslora = false, uses_dora = false;
  std::vector<uint32_t> invocation_tokens;
  std::string base;

  uint32_t rank_of(std::string_view module) const;
  // alpha / rank, or with rsLoRA (Kalajdzievski 2023) alpha / sqrt(rank).
  float scale_of(std::string_view module, uint32_t rank) const;
};

// Errors: another kind of adapter; a feature that is not supported, by the name of its field.
Result<PeftConfig> parse_peft_config(std::string_view text);

}  // namespace doppler::formats
