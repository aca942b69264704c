#include "formats/image_tensors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "formats/expert_tensors.h"

namespace doppler::formats {
namespace {

constexpr std::array kNames = {"patch_embed.proj.weight", "patch_embedding.weight", "patch_conv.weight",
                               "patch_embeddings.projection.weight", "v.patch_embd.weight"};

constexpr std::string_view kGemma3Projection = "mm_input_projection_weight";
constexpr std::array kMerging = {"patch_merger.merging_layer.weight", "mm.patch_merger.weight"};
constexpr std::array kDownsample = {"visual.downsample.weight", "mm.patch_merger.weight"};
constexpr std::string_view kAxisPositions = "position_embedding_table";

bool ends_with_any(const std::string& name, std::span<const char* const> ends) {
  return std::ranges::any_of(ends, [&](const char* end) { return name.ends_with(end); });
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

// A matrix [rows, hidden * patches], or a convolution [rows, hidden, y, x].
void order_by_patch(std::vector<std::unique_ptr<ByteSource>>& sources, TensorInfo& tensor, uint64_t hidden) {
  if (tensor.shape.size() > 2) flatten(tensor);
  if (hidden == 0 || tensor.shape[1] % hidden != 0) return;
  const uint64_t rows = tensor.shape[0], patches = tensor.shape[1] / hidden;
  const uint64_t number_bytes = dtype_info(tensor.type).block_bytes;
  sources.push_back(gathered({{sources[tensor.file].get(), tensor.offset}}, tensor.bytes));
  sources.push_back(transposed(*sources.back(), rows, patches, hidden, number_bytes));
  tensor.file = static_cast<uint32_t>(sources.size() - 1);
  tensor.offset = 0;
}

template <class Tensors>
auto* find_tensor(Tensors& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

// These come after the positions in the table of a tower with a class token.
constexpr std::array kAfterPositions = {"class_embedding", "cls_token", "patch_embeddings.projection.bias"};

void join_class_rows(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors,
                     const std::string& positions_name, const std::string& prefix) {
  TensorInfo* const positions = find_tensor(tensors, positions_name);
  const uint64_t n = positions->shape.back(), row_bytes = n * dtype_info(positions->type).block_bytes;
  std::vector<ByteRun> runs;
  std::vector<std::string> joined;
  for (uint64_t at = 0; at + row_bytes <= positions->bytes; at += row_bytes)
    runs.push_back({sources[positions->file].get(), positions->offset + at});
  for (const char* name : kAfterPositions) {
    const TensorInfo* row = find_tensor(tensors, prefix + name);
    if (!row) continue;
    if (row->type != positions->type || row->bytes != row_bytes) return;
    runs.push_back({sources[row->file].get(), row->offset});
    joined.push_back(row->name);
  }
  if (joined.empty()) return;
  positions->shape = {runs.size(), n};
  positions->bytes = runs.size() * row_bytes;
  positions->file = static_cast<uint32_t>(sources.size());
  positions->offset = 0;
  sources.push_back(gathered(std::move(runs), row_bytes));
  std::erase_if(tensors,
                [&](const TensorInfo& each) { return std::ranges::find(joined, each.name) != joined.end(); });
}

void join_class_rows(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors) {
  constexpr std::string_view kPositions = "embeddings.position_embedding";
  std::vector<std::pair<std::string, std::string>> found;  // names, and what comes before the other names
  for (const TensorInfo& tensor : tensors) {
    const size_t at = tensor.name.rfind(kPositions);
    if (at == tensor.name.npos || tensor.shape.empty() || dtype_info(tensor.type).block_size != 1) continue;
    found.emplace_back(tensor.name, tensor.name.substr(0, at + std::string_view("embeddings.").size()));
  }
  for (const auto& [name, prefix] : found) {
    const bool has_class = find_tensor(tensors, prefix + kAfterPositions[0]) ||
                           find_tensor(tensors, prefix + kAfterPositions[1]);
    if (has_class) join_class_rows(sources, tensors, name, prefix);
  }
}

// Gemma 4 rotates the first half of a head by the column and the second by the row, each half as a head of its own. The
// quarters of a head in this order are one head whose first pairs turn by the row.
constexpr std::array kQuarters = {2, 0, 3, 1};

void order_rotations(std::vector<std::unique_ptr<ByteSource>>& sources,
                     const std::vector<TensorInfo>& tensors, TensorInfo& tensor) {
  constexpr std::string_view kLayers = "vision_tower.encoder.layers.";
  constexpr std::array<std::string_view, 4> kRotated = {"self_attn.q_norm.weight", "self_attn.k_norm.weight",
                                                        "self_attn.q_proj.linear.weight",
                                                        "self_attn.k_proj.linear.weight"};
  const auto end =
      std::ranges::find_if(kRotated, [&](std::string_view e) { return tensor.name.ends_with(e); });
  if (end == kRotated.end() || tensor.name.find(kLayers) == tensor.name.npos) return;
  const TensorInfo* norm = find_tensor(
      tensors, tensor.name.substr(0, tensor.name.size() - end->size()) + std::string(kRotated[0]));
  const uint64_t heads_dim = tensor.shape.empty() ? 0 : tensor.shape[0];
  const uint64_t head_dim = norm && norm->shape.size() == 1 ? norm->shape[0] : 0;
  const bool is_plain = dtype_info(tensor.type).block_size == 1;
  if (head_dim == 0 || head_dim % 4 != 0 || heads_dim % head_dim != 0 || !is_plain) return;
  const uint64_t quarter_bytes = tensor.bytes / heads_dim * (head_dim / 4);
  std::vector<ByteRun> runs;
  for (uint64_t head = 0; head < heads_dim / head_dim; ++head) {
    for (const int quarter : kQuarters) {
      const uint64_t at = (head * kQuarters.size() + static_cast<uint64_t>(quarter)) * quarter_bytes;
      runs.push_back({sources[tensor.file].get(), tensor.offset + at});
    }
  }
  tensor.file = static_cast<uint32_t>(sources.size());
  tensor.offset = 0;
  sources.push_back(gathered(std::move(runs), quarter_bytes));
}

void join_limits(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors) {
  constexpr std::array<std::string_view, 4> kLimits = {".input_min", ".input_max", ".output_min",
                                                       ".output_max"};
  std::vector<std::string> joined;
  std::vector<TensorInfo> made;
  std::unordered_map<std::string_view, const TensorInfo*> by_name;
  for (const TensorInfo& tensor : tensors) by_name.emplace(tensor.name, &tensor);
  for (const TensorInfo& tensor : tensors) {
    if (!tensor.name.ends_with(kLimits[0]) || dtype_info(tensor.type).block_size != 1) continue;
    const std::string of = tensor.name.substr(0, tensor.name.size() - kLimits[0].size());
    std::vector<ByteRun> runs;
    for (const std::string_view limit : kLimits) {
      const auto found = by_name.find(of + std::string(limit));
      if (found == by_name.end()) break;
      const TensorInfo& each = *found->second;
      if (each.type != tensor.type || each.bytes != dtype_info(tensor.type).block_bytes) break;
      runs.push_back({sources[each.file].get(), each.offset});
    }
    if (runs.size() != kLimits.size()) continue;
    TensorInfo limits = tensor;
    limits.name = of + ".limits";
    limits.shape = {kLimits.size()};
    limits.bytes = kLimits.size() * tensor.bytes;
    limits.file = static_cast<uint32_t>(sources.size());
    limits.offset = 0;
    sources.push_back(gathered(std::move(runs), tensor.bytes));
    made.push_back(std::move(limits));
    for (const std::string_view limit : kLimits) joined.push_back(of + std::string(limit));
  }
  const std::unordered_set<std::string_view> gone(joined.begin(), joined.end());
  std::erase_if(tensors, [&](const TensorInfo& each) { return gone.contains(each.name); });
  std::ranges::move(made, std::back_inserter(tensors));
}

}  // namespace

void reshape_image_tensors(std::vector<std::unique_ptr<ByteSource>>& sources,
                           std::vector<TensorInfo>& tensors) {
  for (TensorInfo& tensor : tensors) {
    if (tensor.shape.size() > 2 && ends_with_any(tensor.name, kNames)) flatten(tensor);
    const bool is_plain = dtype_info(tensor.type).block_size == 1;
    if (tensor.shape.size() == 4 && is_plain && ends_with_any(tensor.name, kDownsample)) {
      order_by_patch(sources, tensor, tensor.shape[1]);
      continue;
    }
    if (tensor.shape.size() == 3 && tensor.name.ends_with(kAxisPositions))
      tensor.shape = {tensor.shape[0] * tensor.shape[1], tensor.shape[2]};
    if (tensor.shape.size() != 2 || !is_plain || tensor.shape[0] == 0) continue;
    if (tensor.name.ends_with(kGemma3Projection)) transpose(sources, tensor);
    if (ends_with_any(tensor.name, kMerging)) order_by_patch(sources, tensor, tensor.shape[0]);
  }
  join_class_rows(sources, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) order_rotations(sources, tensors, tensors[i]);
  join_limits(sources, tensors);
}

}  // namespace doppler::formats
