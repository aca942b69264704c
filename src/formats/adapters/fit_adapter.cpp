#include "formats/adapters/fit_adapter.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "base/text.h"
#include "formats/architectures/tensor_names.h"

namespace doppler::formats {
namespace {

// The matrix of the model to which rows of an adapter's tensor belong. A fused tensor has a list of targets, for
// matrices one below the other.
struct Target {
  TensorId tensor = TensorId::kQ;
  uint32_t layer = 0;
  uint64_t n = 0, k = 0;
  uint32_t part = 0, parts = 1, part_rows = 0;  // as StoredTensor has them
};

class Fitter {
 public:
  Fitter(const Adapter& adapter, const ModelConfig& model) : adapter_(adapter), model_(model), named_(model) {
    named_.gguf_names = adapter.gguf_names;
    if (named_.gguf_names != model.gguf_names && !named_.gguf_names) {
      named_.huggingface_prefix = architecture_of(model).huggingface.prefix;
    }
    find_targets();
  }

  Result<FittedAdapter> run() {
    static std::atomic<uint32_t> serials = 0;
    FittedAdapter out{
        .name = adapter_.name, .serial = ++serials, .invocation_tokens = adapter_.invocation_tokens};
    for (const AdaptedTensor& tensor : adapter_.tensors) DP_CHECK(fit(tensor, out));
    for (const ReplacedTensor& tensor : adapter_.replaced) DP_CHECK(replace(tensor, out));
    return out;
  }

 private:
  void find_targets() {
    std::vector<PlacedTensor> placed = tensors_of(named_);
    if (model_.tied_embeddings)
      placed.push_back({&tensor_row(architecture_of(model_), TensorId::kOutput), 0});
    for (const PlacedTensor& tensor : placed) {
      const StoredTensor stored = stored_tensor(named_, tensor.row->id, tensor.layer);
      if (tensor.row->is_norm || tensor.row->is_vector || stored.shape.size() != 2) continue;
      if (stored.parts > 1 && (stored.part_rows == 0 || stored.shape[0] % stored.part_rows != 0)) continue;
      const Target target{.tensor = tensor.row->id,
                          .layer = tensor.layer,
                          .n = stored.shape[0],
                          .k = stored.shape[1],
                          .part = stored.part,
                          .parts = stored.parts,
                          .part_rows = stored.part_rows};
      targets_[stored.name].push_back(target);
      // In GGUF files Phi 3's gates and ups have the name of the ups.
      if (const auto fused = fused_.find(stored.name); fused != fused_.end()) fused->second.push_back(target);
      if (stored.parts > 1) continue;
      for (const std::string& whole : fused_tensor_names(stored.name)) fused_[whole].push_back(target);
    }
  }

  // If a text model is part of a larger one, names of adapters may say so or not.
  const std::vector<Target>* find(const std::string& name, uint64_t rows) const {
    if (const std::vector<Target>* known = find_exactly(name, rows)) return known;
    for (const auto& [part, other] :
         {std::pair("model.language_model.", "model."), std::pair("language_model.model.", "model."),
          std::pair("language_model.lm_head", "lm_head"), std::pair("model.", "model.language_model."),
          std::pair("model.", "language_model.model."), std::pair("model.", "")}) {
      if (!name.starts_with(part)) continue;
      const std::string renamed = other + name.substr(std::string_view(part).size());
      if (const std::vector<Target>* known = find_exactly(renamed, rows)) return known;
    }
    return nullptr;
  }

  // Finds one matrix, or the matrices that a file fuses into one of so many rows.
  const std::vector<Target>* find_exactly(const std::string& name, uint64_t rows) const {
    const auto known = targets_.find(name), fused = fused_.find(name);
    uint64_t fused_rows = 0;
    if (fused != fused_.end()) {
      for (const Target& target : fused->second) fused_rows += target.n;
    }
    if (known != targets_.end() && (fused == fused_.end() || fused_rows != rows)) return &known->second;
    return fused == fused_.end() ? nullptr : &fused->second;
  }

  Unexpected unknown(const std::string& tensor) const {
    return fail(
        ErrorKind::kInvalidInput,
        "The adapter %s does not fit the model %s: the model has no matrix \"%s\" that an adapter may have.",
        adapter_.name.c_str(), model_.name.c_str(), printable(tensor).c_str());
  }

  Result<void> fit(const AdaptedTensor& tensor, FittedAdapter& out) {
    const std::vector<Target>* targets = find(tensor.tensor, tensor.n);
    if (!targets) return unknown(tensor.tensor);
    uint64_t n = 0;
    for (const Target& target : *targets) n += target.n;
    const bool is_table = targets->front().tensor == TensorId::kEmbedding;
    const uint64_t k = targets->front().k;
    const uint64_t wanted_n = is_table ? k : n, wanted_k = is_table ? n : k;
    if (tensor.n != wanted_n || tensor.k != wanted_k || is_table != tensor.is_embedding) {
      return fail(
          ErrorKind::kInvalidInput,
          "The adapter %s does not fit the model %s: it adapts \"%s\" from %llu to %llu values, and the "
          "model's has %llu and %llu.",
          adapter_.name.c_str(), model_.name.c_str(), printable(tensor.tensor).c_str(),
          static_cast<unsigned long long>(tensor.k), static_cast<unsigned long long>(tensor.n),
          static_cast<unsigned long long>(wanted_k), static_cast<unsigned long long>(wanted_n));
    }
    if (is_table) {
      out.embedding = part_of(tensor, {.tensor = TensorId::kEmbedding, .n = tensor.n, .k = tensor.k}, 0);
      return {};
    }
    uint64_t first = 0;
    for (const Target& target : *targets) {
      DP_CHECK(check_order(tensor, target));
      const bool is_there = std::ranges::any_of(out.matrices, [&](const FittedMatrix& matrix) {
        return matrix.tensor == target.tensor && matrix.layer == target.layer;
      });
      if (is_there) return twice(tensor.tensor);
      out.matrices.push_back(part_of(tensor, target, first));
      first += target.n;
    }
    return {};
  }

  Unexpected twice(const std::string& tensor) const {
    return fail(ErrorKind::kInvalidInput, "The adapter %s adapts what \"%s\" is a part of twice.",
                adapter_.name.c_str(), printable(tensor).c_str());
  }

  // GGUF files have the value heads of gated delta nets in another order, and this reader does not convert it.
  Result<void> check_order(const AdaptedTensor& tensor, const Target& target) const {
    const bool is_reordered = adapter_.gguf_names != model_.gguf_names && is_in_layer(target.tensor) &&
                              architecture_of(model_).gguf.tiles_value_heads &&
                              is_recurrent_layer(model_, target.layer);
    if (!is_reordered) return {};
    return fail(
        ErrorKind::kUnsupported,
        "The adapter %s adapts \"%s\", whose rows GGUF and Hugging Face order differently; load the model "
        "from a file of the adapter's kind.",
        adapter_.name.c_str(), printable(tensor.tensor).c_str());
  }

  FittedMatrix part_of(const AdaptedTensor& tensor, const Target& target, uint64_t first) const {
    FittedMatrix out{.tensor = target.tensor,
                     .layer = target.layer,
                     .rank = tensor.rank,
                     .n = target.n,
                     .k = target.k,
                     .a = tensor.a,
                     .scale = tensor.scale,
                     .label = tensor.tensor};
    out.b = rows_of(tensor.b, target, first, tensor.rank);
    out.bias = rows_of(tensor.bias, target, first, 1);
    out.magnitude = rows_of(tensor.magnitude, target, first, 1);
    return out;
  }

  // Takes the target's rows of an adapter's matrix, in the order of the model's file.
  std::vector<float> rows_of(const std::vector<float>& from, const Target& target, uint64_t first,
                             uint64_t columns) const {
    std::vector<float> out;
    if (from.empty()) return out;
    out.reserve(target.n * columns);
    for (uint64_t row = 0; row < target.n; ++row) {
      const uint64_t before = target.parts > 1 ? 0 : first;
      const auto begin = from.begin() + static_cast<ptrdiff_t>((before + source_row(target, row)) * columns);
      out.insert(out.end(), begin, begin + static_cast<ptrdiff_t>(columns));
    }
    return out;
  }

  // Files differ in the two rows of a head that are rotated together (convert/piece.cpp).
  uint64_t source_row(const Target& target, uint64_t row) const {
    if (target.parts > 1) {
      return (row / target.part_rows * target.parts + target.part) * target.part_rows +
             row % target.part_rows;
    }
    const Architecture& architecture = architecture_of(model_);
    if (adapter_.gguf_names == model_.gguf_names ||
        architecture.gguf.pairing.value == architecture.huggingface.pairing.value) {
      return row;
    }
    const uint32_t heads = rotated_heads(model_, target.tensor);
    if (heads == 0) return row;
    const uint64_t head_rows = target.n / heads, in_head = row % head_rows, half = head_rows / 2;
    // GGUF's row 2i + j of a head is Hugging Face's row i + j * half.
    const uint64_t source =
        model_.gguf_names ? in_head / 2 + in_head % 2 * half : in_head % half * 2 + in_head / half;
    return row - in_head + source;
  }

  Result<void> replace(const ReplacedTensor& tensor, FittedAdapter& out) {
    const size_t dot = tensor.tensor.rfind('.');
    const std::string module = tensor.tensor.substr(0, dot), suffix = tensor.tensor.substr(dot);
    const std::vector<Target>* targets = find(module, tensor.shape.empty() ? 0 : tensor.shape[0]);
    if (suffix == ".bias" && targets) return replace_bias(tensor, *targets, out);
    return replace_whole(tensor, module, suffix, targets, out);
  }

  Result<void> replace_bias(const ReplacedTensor& tensor, const std::vector<Target>& targets,
                            FittedAdapter& out) {
    uint64_t n = 0;
    for (const Target& target : targets) n += target.n;
    if (tensor.values.size() != n) return misfit(tensor);
    uint64_t first = 0;
    for (const Target& target : targets) {
      const auto known = std::ranges::find_if(out.matrices, [&](const FittedMatrix& matrix) {
        return matrix.tensor == target.tensor && matrix.layer == target.layer;
      });
      FittedMatrix alone{.tensor = target.tensor,
                         .layer = target.layer,
                         .n = target.n,
                         .k = target.k,
                         .label = tensor.tensor};
      FittedMatrix& matrix =
          known != out.matrices.end() ? *known : out.matrices.emplace_back(std::move(alone));
      matrix.replaced_bias = rows_of(tensor.values, target, first, 1);
      first += target.n;
    }
    return {};
  }

  // Replaces embeddings, the output matrix and norms. No kind of file reorders their rows.
  Result<void> replace_whole(const ReplacedTensor& tensor, const std::string& module,
                             const std::string& suffix, const std::vector<Target>* targets,
                             FittedAdapter& out) {
    for (const PlacedTensor& placed : tensors_of(named_)) {
      if (!placed.row->is_norm || adapter_.gguf_names != model_.gguf_names) continue;
      const StoredTensor stored = stored_tensor(named_, placed.row->id, placed.layer);
      if (stored.name != module || stored.suffix != suffix) continue;
      if (!is_same_shape(stored.shape, tensor.shape)) return misfit(tensor);
      out.replaced.push_back(tensor);
      return {};
    }
    const bool is_whole =
        targets && suffix == ".weight" && targets->size() == 1 &&
        (targets->front().tensor == TensorId::kEmbedding || targets->front().tensor == TensorId::kOutput);
    if (!is_whole) return unknown(tensor.tensor);
    const Target& target = targets->front();
    if (tensor.shape != std::vector<uint64_t>{target.n, target.k}) return misfit(tensor);
    out.replaced.push_back(tensor);
    out.replaced.back().tensor = tensor_name(model_, target.tensor, 0);
    return {};
  }

  Unexpected misfit(const ReplacedTensor& tensor) const {
    return fail(ErrorKind::kInvalidInput,
                "The adapter %s does not fit the model %s: its \"%s\" has another shape than the model's.",
                adapter_.name.c_str(), model_.name.c_str(), printable(tensor.tensor).c_str());
  }

  const Adapter& adapter_;
  const ModelConfig& model_;
  ModelConfig named_;  // the model's numbers, with the names of the adapter's kind of file
  std::map<std::string, std::vector<Target>> targets_,
      fused_;  // by the names of matrices, and of several as one
};

}  // namespace

uint32_t FittedAdapter::rank() const {
  uint32_t most = 0;
  for (const FittedMatrix& matrix : matrices) most = std::max(most, matrix.rank);
  if (embedding) most = std::max(most, embedding->rank);
  return most;
}

Result<FittedAdapter> fit_adapter(const Adapter& adapter, const ModelConfig& model) {
  return Fitter(adapter, model).run();
}

}  // namespace doppler::formats
