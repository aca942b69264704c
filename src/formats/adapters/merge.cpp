#include "formats/adapters/merge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "formats/adapters/matrix_rows.h"
#include "formats/architectures/tensor_names.h"
#include "formats/checkpoint_changes.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

// An adapter's change of some rows of a tensor.
struct Delta {
  std::shared_ptr<const FittedMatrix> matrix;
  MatrixRows rows;
};

// Gives a tensor's bytes with the changes of adapters, which it computes when somebody reads.
class MergedTensor final : public ByteSource {
 public:
  // adapter: its name, for messages.
  MergedTensor(ByteSource& source, TensorInfo tensor, float scale, const std::string& adapter)
      : source_(source), tensor_(std::move(tensor)), scale_(scale), deltas_(tensor_.shape[0]) {
    name_ = format_text("%s with %s:%g", source.name().c_str(), adapter.c_str(), double{scale});
  }

  void add(const Delta& delta) {
    const auto held = std::make_shared<const Delta>(delta);
    for (uint64_t row = 0; row < delta.matrix->n; ++row) {
      deltas_[host_size(delta.rows.row_in_file(row))] = {held, row};
    }
  }
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return tensor_.bytes; }

  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const uint64_t row_bytes = bytes_of(tensor_.type, tensor_.shape[1]);
    const uint64_t first = offset / row_bytes, end = (offset + count + row_bytes - 1) / row_bytes;
    auto reading = source_.read(tensor_.offset + first * row_bytes, (end - first) * row_bytes);
    DP_CO_TRY(std::vector<uint8_t> bytes, co_await std::move(reading));
    std::vector<float> numbers(host_size(tensor_.shape[1]));
    for (uint64_t row = first; row < end; ++row) {
      const auto& [delta, own] = deltas_[host_size(row)];
      if (!delta) continue;
      uint8_t* const at = bytes.data() + (row - first) * row_bytes;
      DP_CO_CHECK(dequantise(tensor_.type, at, numbers.data(), numbers.size()));
      change(*delta->matrix, own, numbers);
      DP_CO_CHECK(quantise(tensor_.type, numbers.data(), at, numbers.size()));
    }
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(offset - first * row_bytes);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

 private:
  void change(const FittedMatrix& matrix, uint64_t row, std::vector<float>& numbers) const {
    const float scale = scale_ * matrix.scale;
    for (uint32_t r = 0; r < matrix.rank; ++r) {
      const float factor = scale * matrix.b[row * matrix.rank + r];
      for (uint64_t i = 0; i < matrix.k; ++i) numbers[i] += factor * matrix.a[r * matrix.k + i];
    }
    if (matrix.magnitude.empty()) return;
    double squares = 0;
    for (const float value : numbers) squares += double{value} * double{value};
    const double factor = squares == 0 ? 0 : double{matrix.magnitude[row]} / std::sqrt(squares);
    for (float& value : numbers) value = static_cast<float>(value * factor);
  }

  ByteSource& source_;
  const TensorInfo tensor_;
  const float scale_;
  std::string name_;
  std::vector<std::pair<std::shared_ptr<const Delta>, uint64_t>> deltas_;  // by the tensor's row
};

// Turns an embedding's matrices, so that each row belongs to a token.
FittedMatrix as_rows(const FittedMatrix& embedding) {
  FittedMatrix out{.tensor = TensorId::kEmbedding,
                   .rank = embedding.rank,
                   .n = embedding.k,
                   .k = embedding.n,
                   .scale = embedding.scale,
                   .label = embedding.label};
  out.a.resize(embedding.b.size());
  out.b.resize(embedding.a.size());
  for (uint32_t r = 0; r < embedding.rank; ++r) {
    for (uint64_t i = 0; i < embedding.n; ++i)
      out.a[r * embedding.n + i] = embedding.b[i * embedding.rank + r];
    for (uint64_t t = 0; t < embedding.k; ++t)
      out.b[t * embedding.rank + r] = embedding.a[r * embedding.k + t];
  }
  return out;
}

Unexpected tied(const FittedMatrix& matrix) {
  return fail(
      ErrorKind::kUnsupported,
      "The adapter's matrix \"%s\" cannot be merged: the model's embedding is its output matrix too, and the "
      "adapter changes one of them.",
      printable(matrix.label).c_str());
}

}  // namespace

Task<Result<void>> merge_adapter(std::shared_ptr<const FittedAdapter> adapter, float scale,
                                 const ModelConfig& model, Checkpoint& checkpoint) {
  std::vector<std::shared_ptr<const FittedMatrix>> matrices;
  for (const FittedMatrix& matrix : adapter->matrices) {
    if (matrix.tensor == TensorId::kOutput && model.tied_embeddings) co_return tied(matrix);
    matrices.push_back(std::shared_ptr<const FittedMatrix>(adapter, &matrix));
  }
  if (adapter->embedding) {
    if (model.tied_embeddings) co_return tied(*adapter->embedding);
    matrices.push_back(std::make_shared<const FittedMatrix>(as_rows(*adapter->embedding)));
  }
  std::map<std::string, std::unique_ptr<MergedTensor>> merged;
  std::map<std::string, std::vector<float>> biases;
  for (const auto& matrix : matrices) {
    DP_CO_TRY(const MatrixRows rows, MatrixRows::find(checkpoint, model, matrix->tensor, matrix->layer));
    const TensorInfo& tensor = rows.tensor();
    if (matrix->rank != 0) {
      auto& source = merged[tensor.name];
      if (!source)
        source = std::make_unique<MergedTensor>(checkpoint.file(tensor.file), tensor, scale, adapter->name);
      source->add({.matrix = matrix, .rows = rows});
    }
    if (matrix->bias.empty() && matrix->replaced_bias.empty()) continue;
    if (!rows.bias()) {
      co_return fail(ErrorKind::kUnsupported,
                     "The adapter's bias of \"%s\" cannot be merged: the model has none there.",
                     printable(matrix->label).c_str());
    }
    std::vector<float>& bias = biases[rows.bias()->name];
    if (bias.empty()) {
      auto reading = checkpoint.read_tensor(*rows.bias());
      DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
      bias.resize(bytes.size() / bytes_of(rows.bias()->type, 1));
      DP_CO_CHECK(dequantise(rows.bias()->type, bytes.data(), bias.data(), bias.size()));
    }
    for (uint64_t n = 0; n < matrix->n; ++n) {
      float& value = bias[host_size(rows.bias_in_file(n))];
      if (!matrix->replaced_bias.empty()) value = matrix->replaced_bias[n];
      if (!matrix->bias.empty()) value += scale * matrix->scale * matrix->bias[n];
    }
  }
  for (auto& [name, values] : biases) {
    const std::vector<uint64_t> shape = checkpoint.find(name)->shape;
    put_tensor(checkpoint, name, shape, std::move(values), adapter->name);
  }
  for (auto& [name, source] : merged) put_source(checkpoint, name, std::move(source));
  co_return Result<void>();
}

}  // namespace doppler::formats
