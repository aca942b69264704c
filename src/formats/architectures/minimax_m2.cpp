// MiniMax M2: experts in each layer, norms of all of q and of k, a part of each head rotates. Facts: transformers'
// MiniMaxM2Config; llama.cpp's LLM_ARCH_MINIMAX_M2.
#include "base/json.h"
#include "base/text.h"
#include "formats/architectures/config_sources.h"
#include "formats/architectures/json_fields.h"
#include "formats/architectures/moe_keys.h"
#include "formats/architectures/rows.h"

namespace doppler::formats {
namespace minimax_m2 {
namespace {

using enum TensorId;
using enum Dim;

constexpr std::string_view kGguf[] = {"minimax-m2"};
constexpr HuggingFaceType kTypes[] = {{"minimax_m2", WindowRule::kNone}};
constexpr FieldDefault kDefaults[] = {{"num_local_experts", 256, true},
                                      {"num_experts_per_tok", 8, true},
                                      {"num_key_value_heads", 8, true},
                                      {"rope_theta", 5e6, false}};
constexpr std::string_view kKeys[] = {"num_local_experts", "rotary_dim", "use_qk_norm"};
constexpr TensorId kLayer[] = {kAttentionNorm, kQ,       kK,      kV,          kQNorm,      kKNorm,
                               kAttentionOut,  kFfnNorm, kRouter, kRouterBias, kExpertGate, kExpertUp,
                               kExpertDown};
constexpr TensorRow kTensors[] = {
    {kQNorm, "attn_q_norm", "self_attn.q_norm", {kQRows}, /*is_norm=*/true},
    {kKNorm, "attn_k_norm", "self_attn.k_norm", {kKvRows}, /*is_norm=*/true},
    {kRouter, "ffn_gate_inp", "block_sparse_moe.gate", {kExperts, kHidden}},
    {kRouterBias,
     "exp_probs_b",
     "block_sparse_moe.e_score_correction_bias",
     {kExperts},
     /*is_norm=*/true,
     ".bias",
     ""},
    {kExpertGate, "ffn_gate_exps", "block_sparse_moe.experts.w1", {kExperts, kExpertFfn, kHidden}},
    {kExpertUp, "ffn_up_exps", "block_sparse_moe.experts.w3", {kExperts, kExpertFfn, kHidden}},
    {kExpertDown, "ffn_down_exps", "block_sparse_moe.experts.w2", {kExperts, kHidden, kExpertFfn}},
};

void set_what_no_key_says(MoeConfig& moe) {
  moe.score = RouterScore::kSigmoid;
  moe.has_score_bias = true;
  moe.norm_weights = true;
}

Result<void> read(const Json& json, ModelConfig& config) {
  set_what_no_key_says(config.moe);
  for (const char* key : {"use_qk_norm", "use_routing_bias"}) DP_CHECK(require_truth(json, key, true));
  DP_CHECK(require_text(json, "scoring_func", "sigmoid"));
  DP_CHECK(require_text(json, "qk_norm_type", "per_layer"));
  DP_TRY(const auto shared, get_count(json, "shared_intermediate_size"));
  if (shared.value_or(0) != 0) {
    return fail(ErrorKind::kUnsupported, "Field \"shared_intermediate_size\" is %u; supported is 0.",
                *shared);
  }
  DP_TRY(const auto rotary_dim, get_count(json, "rotary_dim"));
  config.rope.rotary_dim = rotary_dim.value_or(config.rope.rotary_dim);
  DP_CHECK(check_config(config));
  return read_huggingface_moe(json, config);
}

Result<void> read_gguf(const GgufKeys& keys, ModelConfig& config) {
  set_what_no_key_says(config.moe);
  return read_gguf_moe(keys, config);
}

constexpr Architecture kRow = {
    .family = "minimax_m2",
    .layer = kLayer,
    .own_tensors = kTensors,
    .gguf = {.architectures = kGguf,
             .pairing = RopePairing::kNeox,
             .read = read_gguf,
             .write = gguf_moe_fields,
             .keys = kGgufMoeKeys},
    .huggingface = {.model_types = kTypes,
                    .pairing = RopePairing::kNeox,
                    .defaults = kDefaults,
                    .read = read,
                    .keys = kKeys},
};

}  // namespace
}  // namespace minimax_m2

constinit const Architecture rows::minimax_m2 = minimax_m2::kRow;

}  // namespace doppler::formats
