#include "formats/synth/synthetic_adapter.h"

#include <cmath>
#include <random>

#include "formats/architectures/tensor_names.h"

namespace doppler::formats {
namespace {

std::vector<float> numbers(uint64_t count, float most, std::minstd_rand& random) {
  std::vector<float> out(count);
  for (float& value : out) {
    value = most * (2 * static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 1);
  }
  return out;
}

}  // namespace

Adapter synthetic_adapter(const ModelConfig& model, uint32_t rank) {
  constexpr float kSmall = 0.01f;
  Adapter out{.name = "synthetic adapter", .base = model.name, .gguf_names = model.gguf_names};
  std::minstd_rand random;
  for (const PlacedTensor& placed : tensors_of(model)) {
    const StoredTensor stored = stored_tensor(model, placed.row->id, placed.layer);
    const bool is_matrix = is_in_layer(placed.row->id) && stored.shape.size() == 2 && !placed.row->is_norm &&
                           !placed.row->is_vector && stored.parts == 1 && placed.row->id != TensorId::kRouter;
    if (!is_matrix) continue;
    AdaptedTensor tensor{.tensor = stored.name, .rank = rank, .n = stored.shape[0], .k = stored.shape[1]};
    tensor.a = numbers(tensor.rank * tensor.k, 1 / std::sqrt(static_cast<float>(tensor.k)), random);
    tensor.b = numbers(tensor.n * tensor.rank, kSmall, random);
    out.tensors.push_back(std::move(tensor));
  }
  return out;
}

}  // namespace doppler::formats
