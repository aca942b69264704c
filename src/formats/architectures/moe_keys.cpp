#include "formats/architectures/moe_keys.h"

#include <algorithm>

#include "base/json.h"
#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"

namespace doppler::formats {
namespace {

// llama.cpp's numbers of expert_gating_func.
constexpr uint32_t kGatingSoftmax = 1, kGatingSigmoid = 2, kGatingSoftmaxOfChosen = 3;

Result<void> set_score(uint32_t gating, MoeConfig& moe) {
  switch (gating) {
    case kGatingSoftmax:
      moe.score = RouterScore::kSoftmax;
      return {};
    case kGatingSigmoid:
      moe.score = RouterScore::kSigmoid;
      return {};
    case kGatingSoftmaxOfChosen:
      moe.score = RouterScore::kSoftmaxOfChosen;
      return {};
    default:
      return fail(ErrorKind::kUnsupported, "Key \"expert_gating_func\" is %u; known are 1 to 3.", gating);
  }
}

uint32_t gating_of(RouterScore score) {
  if (score == RouterScore::kSoftmax) return kGatingSoftmax;
  return score == RouterScore::kSigmoid ? kGatingSigmoid : kGatingSoftmaxOfChosen;
}

}  // namespace

Result<void> check_moe(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  constexpr uint32_t kMostExperts = 4096, kMostDim = 1 << 20;  // ten times the largest published models
  if (moe.n_experts == 0) return {};
  if (moe.n_experts > kMostExperts || moe.n_used == 0 || moe.n_used > moe.n_experts) {
    return fail(ErrorKind::kInvalidInput, "%u of %u experts are used; allowed is 1 to all of at most %u.",
                moe.n_used, moe.n_experts, kMostExperts);
  }
  if (moe.expert_dim == 0 || moe.expert_dim > kMostDim || moe.shared_dim > kMostDim ||
      moe.row_dim > kMostDim) {
    return fail(ErrorKind::kInvalidInput,
                "Experts have %u rows of %u values and the shared one %u; allowed is 1 to %u, and 0 for no "
                "shared one.",
                moe.expert_dim, expert_row_dim(config), moe.shared_dim, kMostDim);
  }
  if (moe.n_groups == 0 || moe.groups_used == 0 || moe.groups_used > moe.n_groups ||
      moe.n_experts % moe.n_groups != 0) {
    return fail(ErrorKind::kInvalidInput, "%u of %u groups of %u experts are used; groups must divide them.",
                moe.groups_used, moe.n_groups, moe.n_experts);
  }
  return {};
}

void set_leading_dense(ModelConfig& config, uint32_t count) {
  if (count == 0) return;
  config.moe.is_moe.assign(config.n_layers, 1);
  std::fill_n(config.moe.is_moe.begin(), std::min(count, config.n_layers), uint8_t{0});
}

Result<void> read_gguf_moe(const GgufKeys& keys, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  DP_TRY(const auto experts, keys.count("expert_count"));
  if (experts.value_or(0) == 0) {
    moe = {};  // what the family's experts are like says nothing of a dense model
    return {};
  }
  moe.n_experts = *experts;
  DP_TRY(moe.n_used, keys.required("expert_used_count"));
  DP_TRY(const auto dim, keys.count("expert_feed_forward_length"));
  moe.expert_dim = dim.value_or(config.ffn_dim);
  DP_TRY(const auto shared_dim, keys.count("expert_shared_feed_forward_length"));
  DP_TRY(const auto shared_count, keys.count("expert_shared_count"));
  moe.shared_dim = shared_dim.value_or(shared_count.value_or(0) * moe.expert_dim);
  DP_TRY(const auto gating, keys.count("expert_gating_func"));
  if (gating.value_or(0) != 0) DP_CHECK(set_score(*gating, moe));
  DP_TRY(moe.norm_weights, keys.truth("expert_weights_norm", moe.norm_weights));
  DP_TRY(const double scale, keys.number("expert_weights_scale", moe.weight_scale));
  if (scale != 0) moe.weight_scale = static_cast<float>(scale);  // some files have 0 for none
  DP_TRY(const auto groups, keys.count("expert_group_count"));
  DP_TRY(const auto used, keys.count("expert_group_used_count"));
  moe.n_groups = std::max(1u, groups.value_or(1));
  moe.groups_used = std::max(1u, used.value_or(1));
  DP_TRY(const auto dense, keys.count("leading_dense_block_count"));
  set_leading_dense(config, dense.value_or(0));
  return check_moe(config);
}

std::vector<GgufField> gguf_moe_fields(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  if (moe.n_experts == 0) return {};
  std::vector<GgufField> out = {{"expert_count", moe.n_experts},
                                {"expert_used_count", moe.n_used},
                                {"expert_feed_forward_length", moe.expert_dim},
                                {"expert_gating_func", gating_of(moe.score)},
                                {"expert_weights_norm", moe.norm_weights}};
  if (moe.shared_dim != 0) out.push_back({"expert_shared_feed_forward_length", moe.shared_dim});
  if (moe.weight_scale != 1) out.push_back({"expert_weights_scale", moe.weight_scale});
  if (moe.n_groups != 1) {
    out.push_back({"expert_group_count", moe.n_groups});
    out.push_back({"expert_group_used_count", moe.groups_used});
  }
  const auto dense = static_cast<uint32_t>(std::ranges::find(moe.is_moe, 1) - moe.is_moe.begin());
  if (dense != 0) out.push_back({"leading_dense_block_count", dense});
  return out;
}

Result<void> read_huggingface_moe(const Json& json, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  for (const std::string_view key : kHuggingFaceMoeKeys) {
    DP_TRY(const auto count, get_count(json, std::string(key).c_str()));
    if (count) moe.n_experts = *count;
  }
  if (moe.n_experts == 0) return {};
  DP_TRY(const auto used, get_count(json, "num_experts_per_tok"));
  moe.n_used = used.value_or(moe.n_used);
  DP_TRY(const auto dim, get_count(json, "moe_intermediate_size"));
  moe.expert_dim = dim.value_or(config.ffn_dim);
  return check_moe(config);
}

}  // namespace doppler::formats
