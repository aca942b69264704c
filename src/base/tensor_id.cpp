#include "base/tensor_id.h"

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
    {TensorId::kDense1, false, "dense_2"},
    {TensorId::kDense2, false, "dense_3"},
    {TensorId::kPositions, false, "position_embd"},
    {TensorId::kTokenTypes, false, "token_types"},
    {TensorId::kEmbeddingNorm, false, "token_embd_norm"},
    {TensorId::kEmbeddingNormBias, false, "token_embd_norm.bias"},
    {TensorId::kPostAttentionNormBias, true, "post_attention_norm.bias"},
    {TensorId::kPostFfnNormBias, true, "post_ffw_norm.bias"},
    {TensorId::kClassDense, false, "cls"},
    {TensorId::kClassOut, false, "cls.output"},
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
