// `doppler convert` of an adapter: a PEFT folder to a GGUF file, a GGUF file to a PEFT folder.
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
