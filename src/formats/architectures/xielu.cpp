#include "formats/architectures/xielu.h"

#include <cmath>

#include "formats/architectures/tensor_names.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

float softplus(float x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0f); }

}  // namespace

std::array<float, 4> xielu_terms(std::span<const float, 4> numbers) {
  const auto [alpha_p, alpha_n, beta, eps] = std::array{numbers[0], numbers[1], numbers[2], numbers[3]};
  return {softplus(alpha_p), beta + softplus(alpha_n), beta, eps};
}

Task<Result<void>> read_xielu(const Checkpoint& checkpoint, ModelConfig& config) {
  const auto name = [&](uint32_t layer, const char* part) {
    return tensor_name(config, TensorId::kXielu, layer, part);
  };
  if (!config.xielu.empty() || !checkpoint.find(name(0, kXieluParts[0]))) co_return Result<void>();
  std::vector<float> numbers;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    for (const char* part : kXieluParts) {
      const TensorInfo* tensor = checkpoint.find(name(layer, part));
      if (!tensor) {
        co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing.", name(layer, part).c_str());
      }
      DP_CO_TRY(const std::vector<uint8_t> bytes, co_await checkpoint.read_tensor(*tensor));
      numbers.push_back(0);
      DP_CO_CHECK(dequantise(tensor->type, bytes.data(), &numbers.back(), 1));
    }
  }
  config.xielu = std::move(numbers);
  co_return Result<void>();
}

}  // namespace doppler::formats
