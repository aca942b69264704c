// The names and the order of rows are those of llama.cpp's converter, read in 2026-11; projector/projector_tensors.cpp
// is the other way.
#include "formats/convert/hf_to_projector.h"

#include <algorithm>
#include <unordered_set>

#include "formats/architectures/tensor_names.h"
#include "formats/architectures/tower.h"
#include "formats/checkpoint_changes.h"
#include "formats/convert/outline.h"
#include "formats/convert/projector_header.h"
#include "formats/expert_tensors.h"
#include "formats/projector/projector_config.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

using enum TensorId;

constexpr uint64_t kChannels = 3;
constexpr std::string_view kBreakToken = "[IMG_BREAK]", kBreakTensor = "v.token_embd.img_break";

class TowerParts {
 public:
  TowerParts(const Checkpoint& model, const ModelConfig& tower, const ProjectorKind& kind)
      : model_(model), tower_(tower), gguf_(tower), kind_(kind) {
    gguf_.gguf_names = true;
  }

  Result<void> run() {
    for (const TensorRow& row : architecture_of(tower_).own_tensors) {
      const uint32_t count = is_merger_of_layer(row) ? static_cast<uint32_t>(tower_.tower.deepstack.size())
                             : is_in_layer(row.id)   ? tower_.n_layers
                                                     : 1;
      for (uint32_t layer = 0; layer < count; ++layer) DP_CHECK(add(row, layer));
    }
    return {};
  }
  void add_row(const TensorInfo& table, uint64_t row, std::string_view name) {
    const uint64_t bytes = table.bytes / table.shape[0];
    TensorInfo out = table;
    out.name = name;
    out.shape = {table.shape[1]};
    out.offset += row * bytes;
    out.bytes = bytes;
    made.push_back(std::move(out));
  }

  std::vector<TensorInfo> made;
  std::vector<std::unique_ptr<ByteSource>> sources;  // numbered on from the model's
  std::unordered_set<std::string> used;
  std::vector<TensorInfo> offset_norms;  // by their new names, with the old numbers

 private:
  static bool is_merger_of_layer(const TensorRow& row) {
    return row.huggingface.find('#') != row.huggingface.npos;
  }

  std::string new_name(const TensorRow& row, uint32_t layer, const char* suffix) const {
    return tensor_name(gguf_, row.id, is_merger_of_layer(row) ? tower_.tower.deepstack[layer] : layer,
                       suffix);
  }

  Result<void> add(const TensorRow& row, uint32_t layer) {
    const std::string name = tensor_name(tower_, row.id, layer);
    const TensorInfo* const tensor = model_.find(name);
    if (!tensor && is_of_attention(row.id)) return add_fused(row, layer);
    if (!tensor) {
      const bool has_merger = tower_.tower.block != 1;
      if (!has_merger && (row.id == kMergerIn || row.id == kMergerNorm)) return {};
      return fail(ErrorKind::kInvalidInput, "%s has no tensor \"%s\".", model_.name().c_str(), name.c_str());
    }
    used.insert(name);
    TensorInfo out = *tensor;
    out.name = new_name(row, layer, nullptr);
    if (row.is_norm && architecture_of(tower_).huggingface.norm_offset != 0) {
      offset_norms.push_back(std::move(out));
      return {};
    }
    DP_CHECK(shape(row.id, out));
    made.push_back(std::move(out));
    if (row.is_vector || row.huggingface_suffix != ".weight") return {};
    add_as_it_is(tensor_name(tower_, row.id, layer, ".bias"), new_name(row, layer, ".bias"));
    return {};
  }

  void add_as_it_is(const std::string& name, std::string made_name) {
    const TensorInfo* const tensor = model_.find(name);
    if (!tensor) return;
    used.insert(name);
    made.push_back(*tensor);
    made.back().name = std::move(made_name);
  }

  static bool is_of_attention(TensorId id) { return id == kQ || id == kK || id == kV; }

  // Queries, keys and values in one tensor.
  Result<void> add_fused(const TensorRow& row, uint32_t layer) {
    const std::string part = tensor_name(tower_, row.id, layer, "");
    for (const std::string& whole : fused_tensor_names(part)) {
      if (!model_.find(whole + ".weight")) continue;
      for (const char* suffix : {".weight", ".bias"}) {
        const TensorInfo* const tensor = model_.find(whole + suffix);
        if (!tensor) continue;
        used.insert(tensor->name);
        if (kind_.projector == "qwen2.5vl_merger") {
          DP_CHECK(add_third(*tensor, row.id, new_name(row, layer, suffix)));
        } else if (row.id == kQ) {
          made.push_back(*tensor);
          made.back().name = fused_tensor_names(new_name(row, layer, ""))[0] + suffix;
        }
      }
      return {};
    }
    return fail(ErrorKind::kInvalidInput, "%s has no tensor \"%s.weight\".", model_.name().c_str(),
                part.c_str());
  }

  Result<void> add_third(const TensorInfo& whole, TensorId id, std::string name) {
    TensorInfo out = whole;
    DP_CHECK(check_multiple(whole, 3));
    out.name = std::move(name);
    out.shape[0] /= 3;
    out.bytes /= 3;
    out.offset += out.bytes * (id == kQ ? 0 : id == kK ? 1 : 2);
    made.push_back(std::move(out));
    return {};
  }

  static Result<void> check_multiple(const TensorInfo& tensor, uint64_t of) {
    const bool is_plain = dtype_info(tensor.type).block_size == 1;
    if (is_plain && !tensor.shape.empty() && tensor.shape[0] != 0 && tensor.shape[0] % of == 0) return {};
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has no plain numbers in a multiple of %llu rows.",
                printable(tensor.name).c_str(), static_cast<unsigned long long>(of));
  }

  Result<void> shape(TensorId id, TensorInfo& tensor) {
    if (id == kPatchEmbed) return shape_patches(tensor);
    if (id == kMergerIn) return order_by_value(tensor);
    if (id == kMergerDown && kind_.projector == "gemma3") {
      DP_CHECK(check_multiple(tensor, 1));
      const std::vector<uint64_t> shape = tensor.shape;
      if (shape.size() == 2) transpose(tensor, 1, shape[1], shape[0]);
      tensor.shape.assign(shape.rbegin(), shape.rend());
    }
    if ((id == kQ || id == kK) && kind_.projector == "pixtral") return join_halves(tensor);
    return {};
  }

  // [rows, channels * copies * y * x] to a tensor of four axes for each copy.
  Result<void> shape_patches(TensorInfo& tensor) {
    const uint64_t rows = tower_.hidden_dim, values = tower_.tower.patch_values;
    DP_CHECK(check_multiple(tensor, rows));
    const uint64_t pixels = values / kChannels / kind_.copies,
                   number_bytes = dtype_info(tensor.type).block_bytes;
    uint64_t edge = 1;
    while (edge * edge < pixels) ++edge;
    if (tensor.bytes != rows * values * number_bytes || edge * edge * kChannels * kind_.copies != values) {
      return fail(ErrorKind::kUnsupported, "Tensor \"%s\" has no square patches of %u copies.",
                  printable(tensor.name).c_str(), kind_.copies);
    }
    if (kind_.projector == "lfm2") transpose(tensor, rows, kChannels, pixels);
    tensor.shape = {rows, kChannels, edge, edge};
    if (kind_.copies == 1) return {};
    const uint64_t plane = pixels * number_bytes;
    std::vector<ByteRun> first, second;
    for (uint64_t at = 0; at < tensor.bytes; at += 2 * plane) {
      first.push_back({source_of(tensor), tensor.offset + at});
      second.push_back({source_of(tensor), tensor.offset + at + plane});
    }
    TensorInfo other = tensor;
    other.name += ".1";
    take(other, gathered(std::move(second), plane));
    made.push_back(std::move(other));
    take(tensor, gathered(std::move(first), plane));
    return {};
  }

  // The values of a token's row lie patch by patch here, and value by value in files.
  Result<void> order_by_value(TensorInfo& tensor) {
    const uint64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
    const uint64_t patches = merged_patches(tower_), width = tower_.hidden_dim, block = tower_.tower.block;
    DP_CHECK(check_multiple(tensor, 1));
    if (tensor.bytes != rows * patches * width * dtype_info(tensor.type).block_bytes) {
      return fail(ErrorKind::kInvalidInput,
                  "Tensor \"%s\" has no rows of %llu values for each of %llu patches.",
                  printable(tensor.name).c_str(), static_cast<unsigned long long>(width),
                  static_cast<unsigned long long>(patches));
    }
    transpose(tensor, rows, width, patches);
    if (kind_.projector == "glm4v") tensor.shape = {rows, width, block, block};
    return {};
  }

  // Row i of each half of a head to rows 2 i and 2 i + 1.
  Result<void> join_halves(TensorInfo& tensor) {
    const uint64_t head = tower_.head_dim;
    DP_CHECK(check_multiple(tensor, head));
    const uint64_t rows = tensor.shape[0], row_bytes = tensor.bytes / rows;
    std::vector<ByteRun> runs;
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t in_head = row % head, stored = row - in_head + in_head / 2 + in_head % 2 * (head / 2);
      runs.push_back({source_of(tensor), tensor.offset + stored * row_bytes});
    }
    take(tensor, gathered(std::move(runs), row_bytes));
    return {};
  }

  ByteSource* source_of(const TensorInfo& tensor) const {
    const size_t known = model_.file_count();
    return tensor.file < known ? &model_.file(tensor.file) : sources[tensor.file - known].get();
  }
  void take(TensorInfo& tensor, std::unique_ptr<ByteSource> source) {
    tensor.file = static_cast<uint32_t>(model_.file_count() + sources.size());
    tensor.offset = 0;
    tensor.bytes = source->size();
    sources.push_back(std::move(source));
  }
  // [count, k, n] to [count, n, k].
  void transpose(TensorInfo& tensor, uint64_t count, uint64_t n, uint64_t k) {
    sources.push_back(gathered({{source_of(tensor), tensor.offset}}, tensor.bytes));
    ByteSource& whole = *sources.back();
    take(tensor, transposed(whole, count, n, k, dtype_info(tensor.type).block_bytes));
  }

  const Checkpoint& model_;
  const ModelConfig& tower_;
  ModelConfig gguf_;  // the same tower by GGUF's names
  const ProjectorKind& kind_;
};

Result<std::vector<float>> numbers_of(const TensorInfo& tensor, std::span<const uint8_t> bytes) {
  std::vector<float> out(bytes.size() / dtype_info(tensor.type).block_bytes);
  DP_CHECK(dequantise(tensor.type, bytes.data(), out.data(), out.size()));
  return out;
}

// The number of a special token; empty: the tokenizer has none of this name.
Result<std::optional<uint64_t>> token_number(const Json& tokenizer, std::string_view content) {
  const Json* const added = find(tokenizer, "added_tokens");
  if (!added || !added->is_array()) return std::nullopt;
  for (const Json& token : *added) {
    DP_TRY(const auto text, get_string(token, "content"));
    if (text != content) continue;
    DP_TRY(const auto id, get_integer(token, "id"));
    if (id && *id >= 0) return static_cast<uint64_t>(*id);
  }
  return std::nullopt;
}

// llama.cpp keeps a row of the embedding with Pixtral's tower: that of the token after a row of a picture.
Task<Result<void>> add_break_row(const Checkpoint& model, TowerParts& parts) {
  auto reading = model.read_text("tokenizer.json");
  DP_CO_TRY(const auto text, co_await std::move(reading));
  if (!text) co_return Result<void>();
  DP_CO_TRY(const Json tokenizer, parse_json(*text, "tokenizer.json"));
  DP_CO_TRY(const auto number, token_number(tokenizer, kBreakToken));
  DP_CO_TRY(const ModelConfig config, read_config(model));
  const TensorInfo* const table = model.find(tensor_name(config, kEmbedding, 0));
  const bool has_row = number && table && table->shape.size() == 2 && *number < table->shape[0];
  if (has_row) parts.add_row(*table, *number, kBreakTensor);
  co_return Result<void>();
}

}  // namespace

DType projector_type(const TensorInfo& tensor) {
  const auto is = [&](std::string_view part) { return tensor.name.find(part) != tensor.name.npos; };
  if (tensor.shape.size() < 2 || is("position_embd")) return DType::kF32;
  if (is(".patch_embd.weight") || is(".patch_merger.weight"))
    return tensor.type == DType::kF16 ? DType::kF16 : DType::kF32;
  return is("mm.input_projection") ? DType::kF16 : tensor.type;
}

Task<Result<void>> part_tower(Checkpoint& model, std::string name) {
  auto reading = read_vision_files(model, nullptr);
  DP_CO_TRY(const auto files, co_await std::move(reading));
  if (!files) co_return Result<void>();
  DP_CO_TRY(const auto tower, read_tower(*files));
  if (!tower) co_return Result<void>();
  DP_CO_TRY(const ProjectorKind* const kind, projector_kind(*tower));
  if (name.empty()) name = source_name(model);
  DP_CO_TRY(GgufHeader header, projector_header(*kind, *tower, *files, name));
  TowerParts parts(model, *tower, *kind);
  DP_CO_CHECK(parts.run());
  if (kind->projector == "pixtral") {
    auto adding = add_break_row(model, parts);
    DP_CO_CHECK(co_await std::move(adding));
  }
  const std::vector<uint8_t> head = header.build();
  DP_CO_TRY(GgufParse parse, parse_gguf(head, head.size(), "the vision tower's file"));
  put_projector(model, std::move(parts.made), std::move(parts.sources), parts.used, std::move(*parse.file));
  const float offset = architecture_of(*tower).huggingface.norm_offset;
  for (const TensorInfo& norm : parts.offset_norms) {
    auto reading_norm = model.read_tensor(norm);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading_norm));
    DP_CO_TRY(std::vector<float> numbers, numbers_of(norm, bytes));
    for (float& number : numbers) number += offset;
    put_tensor(model, norm.name, norm.shape, std::move(numbers), norm.name);
  }
  DP_CO_TRY(const ProjectorConfig described, describe_projector(*model.projector(), model));
  co_return check_tower_kept(*tower, described.config);
}

}  // namespace doppler::formats
