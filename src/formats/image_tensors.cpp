#include "formats/image_tensors.h"

#include <array>

#include "formats/expert_tensors.h"

namespace doppler::formats {
namespace {

constexpr std::array kNames = {"patch_embed.proj.weight", "patch_embedding.weight", "patch_conv.weight",
                               "patch_embeddings.projection.weight", "v.patch_embd.weight"};

constexpr std::string_view kMerging = "patch_merger.merging_layer.weight";
constexpr std::string_view kGemma3Projection = "mm_input_projection_weight";

bool is_patch_embedding(const std::string& name) {
  for (const std::string_view end : kNames) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

void flatten(TensorInfo& tensor) {
  uint64_t values = 1;
  for (size_t i = 1; i < tensor.shape.size(); ++i) values *= tensor.shape[i];
  tensor.shape = {tensor.shape[0], values};
}

void transpose(std::vector<std::unique_ptr<ByteSource>>& sources, TensorInfo& tensor) {
  const uint64_t n = tensor.shape[1], k = tensor.shape[0], number_bytes = dtype_info(tensor.type).block_bytes;
  sources.push_back(gathered({{sources[tensor.file].get(), tensor.offset}}, tensor.bytes));
  sources.push_back(transposed(*sources.back(), 1, n, k, number_bytes));
  tensor.name = tensor.name.substr(0, tensor.name.rfind('_')) + ".weight";
  tensor.shape = {n, k};
  tensor.file = static_cast<uint32_t>(sources.size() - 1);
  tensor.offset = 0;
}

void order_by_patch(std::vector<std::unique_ptr<ByteSource>>& sources, TensorInfo& tensor) {
  const uint64_t rows = tensor.shape[0], hidden = tensor.shape[0], patches = tensor.shape[1] / hidden;
  const uint64_t number_bytes = dtype_info(tensor.type).block_bytes;
  sources.push_back(gathered({{sources[tensor.file].get(), tensor.offset}}, tensor.bytes));
  sources.push_back(transposed(*sources.back(), rows, patches, hidden, number_bytes));
  tensor.file = static_cast<uint32_t>(sources.size() - 1);
  tensor.offset = 0;
}

}  // namespace

void reshape_image_tensors(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors) {
  for (TensorInfo& tensor : tensors) {
    if (tensor.shape.size() > 2 && is_patch_embedding(tensor.name)) flatten(tensor);
    const bool is_plain = dtype_info(tensor.type).block_size == 1;
    if (tensor.shape.size() != 2 || !is_plain || tensor.shape[0] == 0) continue;
    if (tensor.name.ends_with(kGemma3Projection)) transpose(sources, tensor);
    if (tensor.name.ends_with(kMerging) && tensor.shape[1] % tensor.shape[0] == 0) order_by_patch(sources, tensor);
  }
}

}  // namespace doppler::formats
