// One matrix of a slot: the sum that a slot's adapters add to one of the model's matrices. Several adapters are one
// whose rank is the sum of theirs (their A's below one another, their B's side by side).
#pragma once

#include <vector>

#include "formats/adapters/matrix_rows.h"
#include "model/adapter_mix.h"

namespace doppler::model {

// y = gain * y + B (A x) + constant. B includes the scales.
struct CombinedMatrix {
  uint32_t rank = 0;
  std::vector<float> a;               // [rank, k]
  std::vector<float> b;               // [n, rank]
  std::vector<float> gain, constant;  // [n], or empty: 1 and 0
  bool is_affine() const { return !gain.empty() || !constant.empty(); }
};

// The adapters' matrices for one matrix of the model, with their scales.
struct MatrixShare {
  const formats::FittedMatrix* matrix = nullptr;
  float scale = 1;
};
std::vector<MatrixShare> shares_of(const std::vector<AdapterPart>& parts, TensorId tensor, uint32_t layer);

// rows: the model's matrix. It is read only if an adapter has DoRA magnitudes or replaces biases.
Task<Result<CombinedMatrix>> combine(std::vector<MatrixShare> shares, formats::MatrixRows rows);

}  // namespace doppler::model
