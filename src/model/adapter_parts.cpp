#include "model/adapter_parts.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace doppler::model {
namespace {

using formats::FittedMatrix;

constexpr uint64_t kRowsAtOnce = 256;  // of the model's matrix in f32

// DoRA's factor of each output row: magnitude / |W + s B A|, with the norm of the row.
Task<Result<std::vector<float>>> dora_factors(const FittedMatrix& matrix, float scale,
                                              const formats::MatrixRows& rows) {
  std::vector<float> factors(formats::host_size(matrix.n));
  for (uint64_t first = 0; first < matrix.n; first += kRowsAtOnce) {
    const uint64_t count = std::min(kRowsAtOnce, matrix.n - first);
    auto reading = rows.read(first, count);
    DP_CO_TRY(std::vector<float> weights, co_await std::move(reading));
    for (uint64_t row = 0; row < count; ++row) {
      float* const w = weights.data() + row * matrix.k;
      const float* const b = matrix.b.data() + (first + row) * matrix.rank;
      for (uint32_t r = 0; r < matrix.rank; ++r) {
        const float factor = scale * b[r];
        const float* const a = matrix.a.data() + r * matrix.k;
        for (uint64_t i = 0; i < matrix.k; ++i) w[i] += factor * a[i];
      }
      double squares = 0;
      for (uint64_t i = 0; i < matrix.k; ++i) squares += double{w[i]} * double{w[i]};
      if (squares == 0) {
        co_return fail(ErrorKind::kInvalidInput,
                       "The adapted matrix \"%s\" has a row of zeros, which DoRA divides by.",
                       printable(matrix.label).c_str());
      }
      const auto magnitude = double{matrix.magnitude[first + row]};
      factors[first + row] = static_cast<float>(magnitude / std::sqrt(squares));
    }
  }
  co_return factors;
}

void append(const FittedMatrix& matrix, float scale, const std::vector<float>& factors, CombinedMatrix& to) {
  const uint32_t before = to.rank, rank = before + matrix.rank;
  to.a.insert(to.a.end(), matrix.a.begin(), matrix.a.end());
  std::vector<float> b(formats::host_size(matrix.n * rank));
  for (uint64_t n = 0; n < matrix.n; ++n) {
    const float own = factors.empty() ? scale : scale * factors[n];
    for (uint32_t r = 0; r < before; ++r) b[n * rank + r] = to.b[n * before + r];
    for (uint32_t r = 0; r < matrix.rank; ++r) b[n * rank + before + r] = own * matrix.b[n * matrix.rank + r];
  }
  to.b = std::move(b);
  to.rank = rank;
}

}  // namespace

std::vector<MatrixShare> shares_of(const std::vector<AdapterPart>& parts, TensorId tensor, uint32_t layer) {
  std::vector<MatrixShare> shares;
  for (const AdapterPart& part : parts) {
    for (const FittedMatrix& matrix : part.adapter->matrices) {
      if (matrix.tensor == tensor && matrix.layer == layer) shares.push_back({&matrix, part.scale});
    }
  }
  return shares;
}

Task<Result<CombinedMatrix>> combine(std::vector<MatrixShare> shares, formats::MatrixRows rows) {
  CombinedMatrix out;
  std::vector<float> replaced;
  for (const MatrixShare& share : shares) {
    const FittedMatrix& matrix = *share.matrix;
    const float scale = share.scale * matrix.scale;
    std::vector<float> factors;
    if (!matrix.magnitude.empty()) {
      auto making = dora_factors(matrix, scale, rows);
      DP_CO_TRY(factors, co_await std::move(making));
      out.gain.resize(formats::host_size(matrix.n), 1.0f);
      for (uint64_t n = 0; n < matrix.n; ++n) out.gain[n] += factors[n] - 1;
    }
    append(matrix, scale, factors, out);
    if (!matrix.bias.empty()) {
      out.constant.resize(formats::host_size(matrix.n));
      for (uint64_t n = 0; n < matrix.n; ++n) out.constant[n] += scale * matrix.bias[n];
    }
    if (matrix.replaced_bias.empty()) continue;
    if (!replaced.empty()) {
      co_return fail(ErrorKind::kInvalidInput, "Two adapters at once replace the biases of \"%s\".",
                     printable(matrix.label).c_str());
    }
    replaced = matrix.replaced_bias;
  }
  if (out.gain.empty() && replaced.empty()) co_return out;
  // y already contains the model's bias, which the gain must not change.
  auto reading = rows.read_bias();
  DP_CO_TRY(std::vector<float> bias, co_await std::move(reading));
  bias.resize(formats::host_size(rows.rows()));
  out.constant.resize(bias.size());
  for (size_t n = 0; n < bias.size(); ++n) {
    if (!out.gain.empty()) out.constant[n] += (1 - out.gain[n]) * bias[n];
    if (!replaced.empty()) out.constant[n] += replaced[n] - bias[n];
  }
  co_return out;
}

}  // namespace doppler::model
