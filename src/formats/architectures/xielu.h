// The numbers of Apertus' activation: tensors of one value a layer in Hugging Face's layout, arrays of metadata in
// GGUF. Sources are Huang and Schlag 2024, transformers' XIELUActivation, and llama.cpp's ggml_xielu with its keys
// xielu.*.
#pragma once

#include <array>
#include <span>

#include "base/task.h"
#include "formats/architectures/config.h"

namespace doppler::formats {

// The endings after "mlp.act_fn", and the order in ModelConfig::xielu.
inline constexpr std::array<const char*, 4> kXieluParts = {".alpha_p", ".alpha_n", ".beta", ".eps"};

// The terms of the formula (graph/ops.h): softplus(alpha_p), beta + softplus(alpha_n), beta, eps.
std::array<float, 4> xielu_terms(std::span<const float, 4> numbers);

// Fills config.xielu from the tensors of a checkpoint that has such; for the converter, since read_config() reads no
// tensors.
Task<Result<void>> read_xielu(const Checkpoint& checkpoint, ModelConfig& config);

}  // namespace doppler::formats
