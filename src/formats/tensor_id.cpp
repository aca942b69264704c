#include "formats/tensor_id.h"

#include "base/text.h"

namespace doppler {
namespace {

struct Label {
  TensorId id;
  bool is_in_layer;
  const char* name;
};

// As GGUF files name them.
constexpr Label kLabels[] = {
    {TensorId::kEmbedding, false, "token_embd"},
    {TensorId::kOutput, false, "output"},
    {TensorId::kFinalNorm, false, "output_norm"},
    {TensorId::kAttentionNorm, true, "attn_norm"},
    {TensorId::kQ, true, "attn_q"},
    {TensorId::kK, true, "attn_k"},
    {TensorId::kV, true, "attn_v"},
    {TensorId::kAttentionOut, true, "attn_output"},
    {TensorId::kQNorm, true, "attn_q_norm"},
    {TensorId::kKNorm, true, "attn_k_norm"},
    {TensorId::kPostAttentionNorm, true, "post_attention_norm"},
    {TensorId::kFfnNorm, true, "ffn_norm"},
    {TensorId::kGate, true, "ffn_gate"},
    {TensorId::kUp, true, "ffn_up"},
    {TensorId::kDown, true, "ffn_down"},
    {TensorId::kPostFfnNorm, true, "post_ffw_norm"},
    {TensorId::kAttentionGate, true, "attn_q_gate"},
    {TensorId::kConvIn, true, "shortconv.in_proj"},
    {TensorId::kConv, true, "ssm_conv1d"},
    {TensorId::kConvBias, true, "ssm_conv1d.bias"},
    {TensorId::kConvOut, true, "shortconv.out_proj"},
    {TensorId::kDeltaQkv, true, "attn_qkv"},
    {TensorId::kDeltaGate, true, "attn_gate"},
    {TensorId::kDeltaRate, true, "ssm_beta"},
    {TensorId::kDeltaDecay, true, "ssm_alpha"},
    {TensorId::kMambaIn, true, "ssm_in"},
    {TensorId::kStateDecay, true, "ssm_a"},
    {TensorId::kStateTimeBias, true, "ssm_dt.bias"},
    {TensorId::kStateSkip, true, "ssm_d"},
    {TensorId::kStateNorm, true, "ssm_norm"},
    {TensorId::kStateOut, true, "ssm_out"},
    {TensorId::kXielu, true, "ffn_xielu"},
    {TensorId::kSinks, true, "attn_sinks"},
    {TensorId::kRouter, true, "ffn_gate_inp"},
    {TensorId::kRouterBias, true, "exp_probs_b"},
    {TensorId::kExpertGate, true, "ffn_gate_exps"},
    {TensorId::kExpertUp, true, "ffn_up_exps"},
    {TensorId::kExpertDown, true, "ffn_down_exps"},
    {TensorId::kSharedGate, true, "ffn_gate_shexp"},
    {TensorId::kSharedUp, true, "ffn_up_shexp"},
    {TensorId::kSharedDown, true, "ffn_down_shexp"},
    {TensorId::kSharedRouter, true, "ffn_gate_inp_shexp"},
    {TensorId::kExpertsIn, true, "ffn_latent_down"},
    {TensorId::kExpertsOut, true, "ffn_latent_up"},
    {TensorId::kQDown, true, "attn_q_a"},
    {TensorId::kQDownNorm, true, "attn_q_a_norm"},
    {TensorId::kQUp, true, "attn_q_b"},
    {TensorId::kLatent, true, "attn_kv_a_mqa"},
    {TensorId::kLatentNorm, true, "attn_kv_a_norm"},
    {TensorId::kKeyUp, true, "attn_k_b"},
    {TensorId::kValueUp, true, "attn_v_b"},
    {TensorId::kRouterNorm, true, "ffn_gate_inp.scale"},
    {TensorId::kExpertScale, true, "ffn_down_exps.scale"},
    {TensorId::kExpertNorm, true, "pre_ffw_norm_2"},
    {TensorId::kDenseOutNorm, true, "post_ffw_norm_1"},
    {TensorId::kExpertOutNorm, true, "post_ffw_norm_2"},
    {TensorId::kLayerTable, false, "per_layer_token_embd"},
    {TensorId::kLayerTableProj, false, "per_layer_model_proj"},
    {TensorId::kLayerTableNorm, false, "per_layer_proj_norm"},
    {TensorId::kLayerInputGate, true, "inp_gate"},
    {TensorId::kLayerInputProj, true, "proj"},
    {TensorId::kLayerInputNorm, true, "post_norm"},
    {TensorId::kLayerScale, true, "layer_output_scale"},
    {TensorId::kAltupIn1, false, "altup_proj.0"},
    {TensorId::kAltupIn2, false, "altup_proj.1"},
    {TensorId::kAltupIn3, false, "altup_proj.2"},
    {TensorId::kAltupOut1, false, "altup_unembd_proj.0"},
    {TensorId::kAltupOut2, false, "altup_unembd_proj.1"},
    {TensorId::kAltupOut3, false, "altup_unembd_proj.2"},
    {TensorId::kAltupRouterNorm, true, "altup_router_norm"},
    {TensorId::kAltupRouter, true, "altup_router"},
    {TensorId::kAltupPredict, true, "altup_predict_coef"},
    {TensorId::kAltupCorrect, true, "altup_correct_coef"},
    {TensorId::kAltupScale, true, "altup_correct_scale"},
    {TensorId::kLaurelLeft, true, "laurel_l"},
    {TensorId::kLaurelRight, true, "laurel_r"},
    {TensorId::kLaurelNorm, true, "laurel_post_norm"},
    {TensorId::kDense1, false, "dense_2"},
    {TensorId::kDense2, false, "dense_3"},
    {TensorId::kPositions, false, "position_embd"},
    {TensorId::kTokenTypes, false, "token_types"},
    {TensorId::kEmbeddingNorm, false, "token_embd_norm"},
    {TensorId::kEmbeddingNormBias, false, "token_embd_norm.bias"},
    {TensorId::kPostAttentionNormBias, true, "attn_output_norm.bias"},
    {TensorId::kPostFfnNormBias, true, "layer_output_norm.bias"},
    {TensorId::kClassDense, false, "cls"},
    {TensorId::kClassNorm, false, "cls.norm"},
    {TensorId::kClassOut, false, "cls.output"},
    {TensorId::kNextProjection, true, "nextn.eh_proj"},
    {TensorId::kNextEmbeddingNorm, true, "nextn.enorm"},
    {TensorId::kNextHiddenNorm, true, "nextn.hnorm"},
    {TensorId::kNextNorm, true, "nextn.shared_head_norm"},
    {TensorId::kPatchEmbed, false, "patch_embd"},
    {TensorId::kAttentionNormBias, true, "ln1.bias"},
    {TensorId::kFfnNormBias, true, "ln2.bias"},
    {TensorId::kFinalNormBias, false, "output_norm.bias"},
    {TensorId::kPreNorm, false, "pre_ln"},
    {TensorId::kPreNormBias, false, "pre_ln.bias"},
    {TensorId::kAttentionScale, true, "ls1"},
    {TensorId::kFfnScale, true, "ls2"},
    {TensorId::kMergerNorm, false, "merger.norm"},
    {TensorId::kMergerNormBias, false, "merger.norm.bias"},
    {TensorId::kMergerUp, false, "merger.0"},
    {TensorId::kMergerDown, false, "merger.2"},
    {TensorId::kMergerIn, false, "merger.in"},
    {TensorId::kDeepNorm, true, "deepstack.norm"},
    {TensorId::kDeepNormBias, true, "deepstack.norm.bias"},
    {TensorId::kDeepUp, true, "deepstack.fc1"},
    {TensorId::kDeepDown, true, "deepstack.fc2"},
    {TensorId::kMergerMiddle, false, "merger.middle"},
    {TensorId::kMergerGate, false, "merger.gate"},
    {TensorId::kMergerMean, false, "merger.mean"},
    {TensorId::kMergerScale, false, "merger.scale"},
    {TensorId::kQLimits, true, "attn_q.limits"},
    {TensorId::kKLimits, true, "attn_k.limits"},
    {TensorId::kVLimits, true, "attn_v.limits"},
    {TensorId::kAttentionOutLimits, true, "attn_output.limits"},
    {TensorId::kGateLimits, true, "ffn_gate.limits"},
    {TensorId::kUpLimits, true, "ffn_up.limits"},
    {TensorId::kDownLimits, true, "ffn_down.limits"},
};
static_assert(std::size(kLabels) == kTensorIdCount);

const Label& label_of(TensorId id) { return kLabels[static_cast<size_t>(id)]; }

}  // namespace

bool is_in_layer(TensorId id) { return label_of(id).is_in_layer; }

std::string tensor_label(TensorId id, uint32_t layer) {
  const Label& label = label_of(id);
  return label.is_in_layer ? format_text("blk.%u.%s", layer, label.name) : std::string(label.name);
}

}  // namespace doppler
