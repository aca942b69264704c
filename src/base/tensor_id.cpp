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
    {TensorId::kXielu, true, "ffn_xielu"},
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
