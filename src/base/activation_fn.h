// The activation functions of feed-forward layers, by the names that papers and config files give them.
#pragma once

#include <cstdint>

namespace doppler {

// kGeluTanh: the tanh approximation (Hendrycks and Gimpel 2016), "gelu_pytorch_tanh". kGeluErf: exact, "gelu". kRelu:
// max(x, 0). The values are those of activate.wgsl, which lacks tanh and relu, since no gate uses them.
enum class ActivationFn : uint8_t { kNone, kSilu, kGeluTanh, kGeluErf, kTanh, kRelu };

constexpr const char* activation_name(ActivationFn activation) {
  constexpr const char* kNames[] = {"none", "silu", "gelu_tanh", "gelu_erf", "tanh", "relu"};
  return kNames[static_cast<uint8_t>(activation)];
}

}  // namespace doppler
