#include "formats/architectures/mla_keys.h"

#include <cmath>

#include "formats/architectures/gguf_keys.h"
#include "formats/architectures/json_fields.h"

namespace doppler::formats {
namespace {

Result<void> check_latents(const MlaConfig& mla) {
  // Several times the largest published models; a head's part that rotates is in pairs.
  constexpr uint32_t kMostRank = 1 << 14, kMostDim = 512;
  const bool fits = mla.kv_rank >= 1 && mla.kv_rank <= kMostRank && mla.q_rank <= kMostRank &&
                    mla.nope_dim >= 1 && mla.nope_dim <= kMostDim && mla.rope_dim >= 2 &&
                    mla.rope_dim <= kMostDim && mla.rope_dim % 2 == 0 && mla.value_dim >= 1 &&
                    mla.value_dim <= kMostDim;
  if (fits) return {};
  return fail(
      ErrorKind::kInvalidInput,
      "Latent attention of rank %u, queries of rank %u, and heads of %u + %u and %u values; allowed are "
      "ranks up to %u and heads up to %u with an even number of rotating values.",
      mla.kv_rank, mla.q_rank, mla.nope_dim, mla.rope_dim, mla.value_dim, kMostRank, kMostDim);
}

}  // namespace

Result<void> read_huggingface_latents(const Json& json, ModelConfig& config) {
  MlaConfig& mla = config.mla;
  DP_TRY(mla.kv_rank, required_count(json, "kv_lora_rank"));
  DP_TRY(const auto q_rank, get_count(json, "q_lora_rank"));
  mla.q_rank = q_rank.value_or(0);
  DP_TRY(mla.nope_dim, required_count(json, "qk_nope_head_dim"));
  DP_TRY(mla.rope_dim, required_count(json, "qk_rope_head_dim"));
  DP_TRY(mla.value_dim, required_count(json, "v_head_dim"));
  config.n_kv_heads = 1;
  config.head_dim = mla.kv_rank + mla.rope_dim;
  return check_latents(mla);
}

Result<void> read_gguf_latents(const GgufKeys& keys, ModelConfig& config) {
  MlaConfig& mla = config.mla;
  DP_TRY(mla.kv_rank, keys.required("attention.kv_lora_rank"));
  DP_TRY(const auto q_rank, keys.count("attention.q_lora_rank"));
  mla.q_rank = q_rank.value_or(0);
  DP_TRY(const uint32_t key_dim, keys.required("attention.key_length_mla"));
  DP_TRY(mla.value_dim, keys.required("attention.value_length_mla"));
  mla.rope_dim = config.rope.rotary_dim;
  if (key_dim <= mla.rope_dim || config.n_kv_heads != 1 || config.head_dim != mla.kv_rank + mla.rope_dim) {
    return fail(ErrorKind::kUnsupported,
                "%u kv heads of %u values are no latents of rank %u with %u that rotate, of keys of %u.",
                config.n_kv_heads, config.head_dim, mla.kv_rank, mla.rope_dim, key_dim);
  }
  mla.nope_dim = key_dim - mla.rope_dim;
  RopeConfig& rope = config.rope;
  rope.mscale_all_dim /= static_cast<double>(architecture_of(config).gguf.yarn_log_multiplier);
  rope.mscale = rope.mscale_all_dim;
  config.attention_scale = latent_attention_scale(config);
  return check_latents(mla);
}

std::vector<GgufField> gguf_latent_fields(const ModelConfig& config) {
  const MlaConfig& mla = config.mla;
  std::vector<GgufField> out = {{"attention.kv_lora_rank", mla.kv_rank},
                                {"attention.key_length_mla", mla.nope_dim + mla.rope_dim},
                                {"attention.value_length_mla", mla.value_dim}};
  if (mla.q_rank != 0) out.push_back({"attention.q_lora_rank", mla.q_rank});
  return out;
}

float latent_attention_scale(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  double mscale = 1;
  if (rope.scaling == RopeScaling::kYarn && rope.factor > 1) {
    mscale += 0.1 * rope.mscale_all_dim * std::log(rope.factor);
  }
  return static_cast<float>(mscale * mscale / std::sqrt(config.mla.nope_dim + config.mla.rope_dim));
}

}  // namespace doppler::formats
