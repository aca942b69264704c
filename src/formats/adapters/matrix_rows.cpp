#include "formats/adapters/matrix_rows.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "formats/architectures/tensor_names.h"
#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

// Counts the rows of the fused matrix `whole` before those of `name`.
uint64_t rows_before(const ModelConfig& config, const std::string& name, const std::string& whole) {
  std::map<std::string, uint64_t> rows;
  for (const PlacedTensor& placed : tensors_of(config)) {
    const StoredTensor stored = stored_tensor(config, placed.row->id, placed.layer);
    if (!stored.shape.empty()) rows[stored.name] = stored.shape[0];
  }
  for (const std::span<const FusedNames> list : {fused_qkv_names(), fused_gate_up_names()}) {
    for (const FusedNames& fused : list) {
      if (!whole.ends_with(fused.whole)) continue;
      const std::string prefix = whole.substr(0, whole.size() - fused.whole.size());
      uint64_t before = 0;
      for (const std::string_view part : fused.parts) {
        if (part.empty()) continue;
        const std::string part_name = prefix + std::string(part);
        if (part_name == name) return before;
        before += rows[part_name];
      }
    }
  }
  return 0;
}

}  // namespace

Result<MatrixRows> MatrixRows::find(const Checkpoint& checkpoint, const ModelConfig& config, TensorId tensor,
                                    uint32_t layer) {
  const bool is_tied = tensor == TensorId::kOutput && config.tied_embeddings;
  const StoredTensor stored = stored_tensor(config, is_tied ? TensorId::kEmbedding : tensor, layer);
  MatrixRows out;
  out.checkpoint_ = &checkpoint;
  out.n_ = stored.shape[0];
  out.k_ = stored.shape.back();
  out.part_ = stored.part;
  out.parts_ = stored.parts;
  out.part_rows_ = stored.part_rows;
  out.weight_ = checkpoint.find(stored.weight_name());
  out.bias_ = checkpoint.find(stored.name + ".bias");
  out.bias_is_own_ = out.bias_ != nullptr;
  std::string whole = stored.name;
  if (!out.weight_) {
    for (const std::string& name : fused_tensor_names(stored.name)) {
      out.weight_ = checkpoint.find(name + stored.suffix);
      if (!out.weight_) continue;
      whole = name;
      out.offset_ = rows_before(config, stored.name, name);
      break;
    }
  }
  if (!out.bias_) out.bias_ = checkpoint.find(whole + ".bias");
  if (!out.weight_ || out.weight_->shape.size() != 2 || out.weight_->shape[1] != out.k_) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" is missing, or no matrix of %llu columns.",
                stored.weight_name().c_str(), static_cast<unsigned long long>(out.k_));
  }
  const uint64_t there = out.weight_->shape[0];
  // Some files have gates and ups under the name of the ups.
  if (out.parts_ == 1 && whole == stored.name && there > out.n_) out.offset_ = there - out.n_;
  if (out.parts_ == 1 ? out.offset_ + out.n_ > there : out.n_ * out.parts_ > there) {
    return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has %llu rows; %llu are needed.",
                out.weight_->name.c_str(), static_cast<unsigned long long>(there),
                static_cast<unsigned long long>(out.offset_ + out.n_));
  }
  return out;
}

Task<Result<std::vector<float>>> MatrixRows::read(uint64_t first, uint64_t count) const {
  const uint64_t row_bytes = bytes_of(weight_->type, k_);
  std::vector<float> out(host_size(count * k_));
  // Each round reads a run of rows that lie beside one another in the file.
  for (uint64_t row = 0; row < count;) {
    const uint64_t at = row_in_file(first + row);
    const uint64_t run =
        parts_ == 1 ? count - row : std::min<uint64_t>(count - row, part_rows_ - (first + row) % part_rows_);
    ByteSource& file = checkpoint_->file(weight_->file);
    auto reading = file.read(weight_->offset + at * row_bytes, run * row_bytes);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    float* const to = out.data() + row * k_;
    DP_CO_CHECK(dequantise(weight_->type, bytes.data(), to, host_size(run * k_)));
    row += run;
  }
  co_return out;
}

Task<Result<std::vector<float>>> MatrixRows::read_bias() const {
  if (!bias_) co_return std::vector<float>();
  auto reading = checkpoint_->read_tensor(*bias_);
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
  std::vector<float> all(bytes.size() / bytes_of(bias_->type, 1));
  DP_CO_CHECK(dequantise(bias_->type, bytes.data(), all.data(), all.size()));
  std::vector<float> out;
  for (uint64_t row = 0; row < n_; ++row) {
    const uint64_t at = bias_in_file(row);
    if (at >= all.size()) {
      co_return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has too few numbers.", bias_->name.c_str());
    }
    out.push_back(all[host_size(at)]);
  }
  co_return out;
}

}  // namespace doppler::formats
