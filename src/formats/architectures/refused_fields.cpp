#include "formats/architectures/refused_fields.h"

#include <algorithm>

#include "base/json.h"

namespace doppler::formats {
namespace {

// A field that changes the maths, unless it holds the number given here, false for 0, or null.
struct RefusedField {
  std::string_view key;
  double neutral;
};
constexpr RefusedField kRefusedFields[] = {
    // scales, caps, biases and norms
    {"final_logit_softcapping", 0},
    {"embedding_multiplier", 1},
    {"residual_multiplier", 1},
    {"logits_scaling", 1},
    {"attention_multiplier", 0},
    {"swiglu_limit", 0},
    {"swiglu_alpha", 1.702},
    {"logit_scale", 1},
    {"scale_emb", 1},
    {"attention_out_bias", 0},
    {"use_bias", 0},
    {"use_qk_norm", 0},
    {"qk_norm", 0},
    {"qk_layernorm", 0},
    {"post_norm", 0},
    {"clip_qkv", 0},
    // attention
    {"no_rope_layers", 0},
    {"rotary_dim", 0},
    {"rotary_pct", 1},
    {"alibi", 0},
    {"is_causal", 1},
    {"parallel_attn", 0},
    {"use_parallel_residual", 0},
    {"attention_chunk_size", 0},
    {"attn_temperature_tuning", 0},
    {"index_topk", 0},
    {"use_mrope", 0},
    {"use_cla", 0},
    {"attn_output_gate", 0},
    {"use_bidirectional_attention", 0},
    {"position_embedding_type", 0},
    {"attention_k_eq_v", 0},
    {"global_head_dim", 0},
    {"num_kv_shared_layers", 0},
    {"kv_lora_rank", 0},
    {"q_lora_rank", 0},
    // experts
    {"num_experts", 0},
    {"num_local_experts", 0},
    {"n_routed_experts", 0},
    {"moe_num_experts", 0},
    {"n_shared_experts", 0},
    {"num_shared_experts", 0},
    {"first_k_dense_replace", 0},
    {"enable_moe_block", 0},
    {"moe_latent_size", 0},
    // layers of other kinds
    {"conv_L_cache", 0},
    {"linear_conv_kernel_dim", 0},
    {"ssm_state_size", 0},
    {"mamba_d_state", 0},
    {"hybrid_override_pattern", 0},
    {"full_attn_idxs", 0},
    {"altup_num_inputs", 0},
    {"hidden_size_per_layer_input", 0},
    {"use_double_wide_mlp", 0},
    {"activation_sparsity_pattern", 0},
};

bool is_neutral(const Json& value, double neutral) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return static_cast<double>(value.get<bool>()) == neutral;
  return value.is_number() && value.get<double>() == neutral;
}

// quant_method of folders whose weights are numbers with scales (float8_tensors.h, expert_tensors.h), or plain.
constexpr std::string_view kQuantMethods[] = {"fp8", "fbgemm_fp8", "compressed-tensors", "modelopt", "mxfp4"};

}  // namespace

Result<void> refuse_others(const Json& json, const HuggingFaceRow& row, const ModelConfig& config) {
  for (const RefusedField& field : kRefusedFields) {
    const Json* value = find(json, field.key);
    if (!value || is_neutral(*value, field.neutral)) continue;
    if (std::ranges::find(row.keys, field.key) != row.keys.end()) continue;
    return fail(ErrorKind::kUnsupported, "Field \"%s\" (%s) is not supported in models of type \"%s\".",
                std::string(field.key).c_str(), printable(to_text(*value)).c_str(),
                config.architecture.c_str());
  }
  return {};
}

Result<void> check_quantisation(const Json& json) {
  const Json* text = find(json, "text_config");
  const Json* quantised = find(json, "quantization_config");
  if (!quantised && text) quantised = find(*text, "quantization_config");
  if (!quantised || quantised->is_null()) return {};
  DP_TRY(const auto method, get_string(*quantised, "quant_method"));
  if (method && std::ranges::count(kQuantMethods, *method) == 0) {
    return fail(ErrorKind::kUnsupported,
                "Weights of quant_method \"%s\" are not supported; supported are fp8, fbgemm_fp8, "
                "compressed-tensors, modelopt and mxfp4.",
                printable(*method).c_str());
  }
  const Json* transforms = find(*quantised, "transform_config");
  if (!transforms || transforms->empty()) return {};
  return fail(ErrorKind::kUnsupported,
              "Field \"transform_config\" of \"quantization_config\" is not supported; allowed is none.");
}

}  // namespace doppler::formats
