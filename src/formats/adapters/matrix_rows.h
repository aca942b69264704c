// A matrix of a checkpoint on the host, in f32. The file may hold it by itself, inside a fused matrix, or head by head
// beside another one. Readers compute with weights when an adapter is loaded (model/adapter_arena.h) or merged
// (merge.h).
#pragma once

#include <vector>

#include "formats/architectures/config.h"
#include "formats/tensor_id.h"

namespace doppler::formats {

class MatrixRows {
 public:
  // checkpoint must outlive it. Error: the tensor is missing.
  static Result<MatrixRows> find(const Checkpoint& checkpoint, const ModelConfig& config, TensorId tensor,
                                 uint32_t layer);
  uint64_t rows() const { return n_; }
  const TensorInfo& tensor() const { return *weight_; }
  const TensorInfo* bias() const { return bias_; }  // null: there is none
  // The row of that tensor that holds row `row` of the matrix. bias_in_file() is the same for its bias.
  uint64_t row_in_file(uint64_t row) const {
    if (parts_ == 1) return offset_ + row;
    return (row / part_rows_ * parts_ + part_) * part_rows_ + row % part_rows_;
  }
  uint64_t bias_in_file(uint64_t row) const { return bias_is_own_ && parts_ == 1 ? row : row_in_file(row); }
  // Rows [first, first + count).
  Task<Result<std::vector<float>>> read(uint64_t first, uint64_t count) const;
  // Reads its bias, one number a row. Empty: it has none.
  Task<Result<std::vector<float>>> read_bias() const;

 private:
  const Checkpoint* checkpoint_ = nullptr;
  const TensorInfo *weight_ = nullptr, *bias_ = nullptr;
  uint64_t n_ = 0, k_ = 0, offset_ = 0;  // offset_: rows of the tensor before the first
  bool bias_is_own_ = false;             // it is no part of the fused matrix's
  uint32_t part_ = 0, parts_ = 1, part_rows_ = 0;
};

}  // namespace doppler::formats
