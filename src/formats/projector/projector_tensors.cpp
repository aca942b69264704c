// The names and the order are those of llama.cpp's convert_hf_to_gguf.py, read in 2026-11.
#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "formats/expert_tensors.h"
#include "formats/projector/projector.h"

namespace doppler::formats {
namespace {

using Sources = std::vector<std::unique_ptr<ByteSource>>;
using Tensors = std::vector<TensorInfo>;

constexpr const char* kPatches = "v.patch_embd.weight";
constexpr const char* kSecondFrame = "v.patch_embd.weight.1";

TensorInfo* find_tensor(Tensors& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  return found == tensors.end() ? nullptr : &*found;
}

uint64_t number_bytes(const TensorInfo& tensor) { return dtype_info(tensor.type).block_bytes; }

Result<void> check_plain(const TensorInfo& tensor, size_t axes) {
  if (tensor.shape.size() == axes && std::ranges::count(tensor.shape, 0) == 0 &&
      dtype_info(tensor.type).block_size == 1) {
    return {};
  }
  return fail(ErrorKind::kUnsupported, "Tensor \"%s\" is no array of plain numbers with %zu axes.",
              printable(tensor.name).c_str(), axes);
}

// The tensor takes its bytes from `source`, which has as many.
void take_from(Sources& sources, TensorInfo& tensor, std::unique_ptr<ByteSource> source) {
  tensor.file = static_cast<uint32_t>(sources.size());
  tensor.offset = 0;
  tensor.bytes = source->size();
  sources.push_back(std::move(source));
}

void transpose(Sources& sources, TensorInfo& tensor, uint64_t count, uint64_t n, uint64_t k) {
  sources.push_back(gathered({{sources[tensor.file].get(), tensor.offset}}, tensor.bytes));
  take_from(sources, tensor, transposed(*sources.back(), count, n, k, number_bytes(tensor)));
}

// [n, channels, y, x] of each of two frames to [n, channels, frames, y, x].
Result<void> join_frames(Sources& sources, Tensors& tensors) {
  TensorInfo* const first = find_tensor(tensors, kPatches);
  const TensorInfo* const second = find_tensor(tensors, kSecondFrame);
  if (!first || !second) return {};
  DP_CHECK(check_plain(*first, 4));
  if (first->shape != second->shape || first->type != second->type) {
    return fail(ErrorKind::kInvalidInput, "Tensors \"%s\" and \"%s\" have different shapes or types.",
                kPatches, kSecondFrame);
  }
  const uint64_t plane = first->shape[2] * first->shape[3] * number_bytes(*first);
  std::vector<ByteRun> runs;
  for (uint64_t at = 0; at < first->bytes; at += plane) {
    runs.push_back({sources[first->file].get(), first->offset + at});
    runs.push_back({sources[second->file].get(), second->offset + at});
  }
  first->shape = {first->shape[0], first->shape[1], 2, first->shape[2], first->shape[3]};
  take_from(sources, *first, gathered(std::move(runs), plane));
  std::erase_if(tensors, [](const TensorInfo& each) { return each.name == kSecondFrame; });
  return {};
}

// Rows of heads whose halves lie in turns return to one half after the other.
Result<void> part_halves(Sources& sources, TensorInfo& tensor, uint64_t heads) {
  const uint64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  if (heads == 0 || rows == 0 || rows % (2 * heads) != 0) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has %llu rows, which are no halves of %llu heads.",
                printable(tensor.name).c_str(), static_cast<unsigned long long>(rows),
                static_cast<unsigned long long>(heads));
  }
  const uint64_t row_bytes = tensor.bytes / rows, head = rows / heads;
  std::vector<ByteRun> runs;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t in_head = row % head, half = in_head / (head / 2), pair = in_head % (head / 2);
    const uint64_t stored = row - in_head + pair * 2 + half;
    runs.push_back({sources[tensor.file].get(), tensor.offset + stored * row_bytes});
  }
  take_from(sources, tensor, gathered(std::move(runs), row_bytes));
  return {};
}

Result<void> part_halves(Sources& sources, Tensors& tensors, const GgufFile& file) {
  DP_TRY(const auto heads, file.get_integer("clip.vision.attention.head_count"));
  for (TensorInfo& tensor : tensors) {
    if (!tensor.name.ends_with(".attn_q.weight") && !tensor.name.ends_with(".attn_k.weight")) continue;
    DP_CHECK(part_halves(sources, tensor, static_cast<uint64_t>(std::max<int64_t>(0, heads.value_or(0)))));
  }
  return {};
}

Result<void> transpose_projection(Sources& sources, Tensors& tensors, const GgufFile&) {
  TensorInfo* const tensor = find_tensor(tensors, "mm.input_projection.weight");
  if (!tensor) return {};
  DP_CHECK(check_plain(*tensor, 2));
  const uint64_t k = tensor->shape[0], n = tensor->shape[1];
  transpose(sources, *tensor, 1, n, k);
  tensor->shape = {n, k};
  return {};
}

Result<void> put_channels_last(Sources& sources, Tensors& tensors, const GgufFile&) {
  TensorInfo* const tensor = find_tensor(tensors, kPatches);
  if (!tensor) return {};
  DP_CHECK(check_plain(*tensor, 4));
  const uint64_t rows = tensor->shape[0], channels = tensor->shape[1],
                 pixels = tensor->shape[2] * tensor->shape[3];
  transpose(sources, *tensor, rows, pixels, channels);
  tensor->shape = {rows, pixels * channels};
  return {};
}

// "v.deepstack.8.norm.weight" to "v.deepstack.0.norm.weight", if 8 is the first layer that has a merger.
Result<void> count_mergers(Sources&, Tensors& tensors, const GgufFile&) {
  constexpr std::string_view kBefore = "v.deepstack.";
  const auto layer_of = [&](const TensorInfo& tensor) -> std::optional<uint32_t> {
    uint32_t layer = 0;
    if (!tensor.name.starts_with(kBefore)) return std::nullopt;
    const char* const last = tensor.name.data() + tensor.name.size();
    const auto [end, error] = std::from_chars(tensor.name.data() + kBefore.size(), last, layer);
    if (error != std::errc() || end == last || *end != '.') return std::nullopt;
    return layer;
  };
  std::set<uint32_t> layers;
  for (const TensorInfo& tensor : tensors) {
    if (const auto layer = layer_of(tensor)) layers.insert(*layer);
  }
  for (TensorInfo& tensor : tensors) {
    const auto layer = layer_of(tensor);
    if (!layer) continue;
    const auto number = std::distance(layers.begin(), layers.find(*layer));
    tensor.name = format_text("%s%d%s", std::string(kBefore).c_str(), static_cast<int>(number),
                              tensor.name.c_str() + tensor.name.find('.', kBefore.size()));
  }
  return {};
}

struct Change {
  std::string_view projector;
  Result<void> (*apply)(Sources& sources, Tensors& tensors, const GgufFile& file);
};
constexpr Change kChanges[] = {
    {"pixtral", part_halves},
    {"gemma3", transpose_projection},
    {"lfm2", put_channels_last},
    {"qwen3vl_merger", count_mergers},
};

}  // namespace

Result<void> reshape_projector_tensors(Sources& sources, Tensors& tensors, const GgufFile& file) {
  DP_CHECK(join_frames(sources, tensors));
  DP_TRY(const auto projector, file.get_string("clip.projector_type"));
  for (const Change& change : kChanges) {
    if (projector == change.projector) DP_CHECK(change.apply(sources, tensors, file));
  }
  return {};
}

}  // namespace doppler::formats
