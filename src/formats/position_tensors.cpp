// The rows lie one after another, so that a table without its first ones is a view (position_tensors.h).
#include "formats/position_tensors.h"

#include <algorithm>

#include "base/json.h"

namespace doppler::formats {
namespace {

constexpr std::string_view kPositionTypes[] = {"xlm-roberta", "roberta", "camembert"};
constexpr int64_t kUsualPadding = 1, kMostPadding = 1 << 20;

}  // namespace

Result<uint64_t> first_position(const Json& config) {
  DP_TRY(const auto type, get_string(config, "model_type"));
  if (std::ranges::find(kPositionTypes, type.value_or("")) == std::end(kPositionTypes)) return 0;
  DP_TRY(const auto padding, get_integer(config, "pad_token_id"));
  const int64_t id = padding.value_or(kUsualPadding);
  if (id >= 0 && id < kMostPadding) return static_cast<uint64_t>(id) + 1;
  return fail(ErrorKind::kInvalidInput, "Field \"pad_token_id\" is %lld; allowed is 0 to %lld.",
              static_cast<long long>(id), static_cast<long long>(kMostPadding - 1));
}

Result<> leave_out_unused_positions(std::vector<TensorInfo>& tensors, const Json& config) {
  DP_TRY(const uint64_t first, first_position(config));
  if (first == 0) return {};
  for (TensorInfo& tensor : tensors) {
    if (!tensor.name.ends_with("embeddings.position_embeddings.weight")) continue;
    if (tensor.shape.size() != 2 || tensor.shape[0] <= first) continue;
    const uint64_t row_bytes = tensor.bytes / tensor.shape[0];
    tensor.offset += first * row_bytes;
    tensor.bytes -= first * row_bytes;
    tensor.shape[0] -= first;
  }
  return {};
}

}  // namespace doppler::formats
