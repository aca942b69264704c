// `doppler convert` for adapters: from a PEFT folder to a GGUF file, and back.
#pragma once

#include <string>
#include <vector>

namespace doppler::cli {

struct ConvertAdapterFlags {
  std::vector<std::string> words;  // IN OUT
  std::string base;                // the model
  bool replace = false;
};
int convert_adapter(const ConvertAdapterFlags& flags);  // the exit code

}  // namespace doppler::cli
