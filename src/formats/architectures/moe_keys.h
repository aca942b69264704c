// The numbers of mixtures of experts by the keys that several families share. Facts without a key (how experts are
// scored, whether weights are normalised) are the family's own business: its reader sets them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/architecture.h"

namespace doppler::formats {

// Keys that change the maths and that the readers below understand, for GgufRow::keys and HuggingFaceRow::keys.
inline constexpr std::string_view kGgufMoeKeys[] = {"expert_count"};
inline constexpr std::string_view kHuggingFaceMoeKeys[] = {"num_experts", "num_local_experts",
                                                           "n_routed_experts", "moe_num_experts"};

// Reads expert_count and the like; nothing if there is no such key. An expert is as wide as the feed-forward layer if
// no key gives its width.
Result<void> read_gguf_moe(const GgufKeys& keys, ModelConfig& config);
// The same keys for a file that is written; none for a dense model.
std::vector<GgufField> gguf_moe_fields(const ModelConfig& config);

// Reads num_experts, num_local_experts, n_routed_experts or moe_num_experts, then num_experts_per_tok, and
// moe_intermediate_size or else intermediate_size.
Result<void> read_huggingface_moe(const Json& json, ModelConfig& config);

// The first `count` layers have no experts.
void set_leading_dense(ModelConfig& config, uint32_t count);

// Bounds of counts that hold for every family.
Result<void> check_moe(const ModelConfig& config);

}  // namespace doppler::formats
