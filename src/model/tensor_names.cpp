#include "model/tensor_names.h"

#include <charconv>
#include <string_view>

#include "base/text.h"

namespace doppler::model {
namespace {

struct Names {
  TensorId id;
  bool in_layer;
  const char* gguf;
  const char* huggingface;
};

constexpr Names kNames[] = {
    {TensorId::kEmbedding, false, "token_embd", "embed_tokens"},
    {TensorId::kOutput, false, "output", "lm_head"},
    {TensorId::kFinalNorm, false, "output_norm", "norm"},
    {TensorId::kAttentionNorm, true, "attn_norm", "input_layernorm"},
    {TensorId::kQ, true, "attn_q", "self_attn.q_proj"},
    {TensorId::kK, true, "attn_k", "self_attn.k_proj"},
    {TensorId::kV, true, "attn_v", "self_attn.v_proj"},
    {TensorId::kAttentionOut, true, "attn_output", "self_attn.o_proj"},
    {TensorId::kQNorm, true, "attn_q_norm", "self_attn.q_norm"},
    {TensorId::kKNorm, true, "attn_k_norm", "self_attn.k_norm"},
    {TensorId::kPostAttentionNorm, true, "post_attention_norm", "post_attention_layernorm"},
    {TensorId::kFfnNorm, true, "ffn_norm", "post_attention_layernorm"},
    {TensorId::kGate, true, "ffn_gate", "mlp.gate_proj"},
    {TensorId::kUp, true, "ffn_up", "mlp.up_proj"},
    {TensorId::kDown, true, "ffn_down", "mlp.down_proj"},
    {TensorId::kPostFfnNorm, true, "post_ffw_norm", "post_feedforward_layernorm"},
};

// The wholes are named as formats/convert/fuse.cpp does.
struct Fused {
  std::string_view part, whole;
};
constexpr Fused kFused[] = {
    {"attn_q", "attn_qkv"},
    {"attn_k", "attn_qkv"},
    {"attn_v", "attn_qkv"},
    {"ffn_gate", "ffn_gate_up"},
    {"ffn_up", "ffn_gate_up"},
    {"self_attn.q_proj", "self_attn.qkv_proj"},
    {"self_attn.k_proj", "self_attn.qkv_proj"},
    {"self_attn.v_proj", "self_attn.qkv_proj"},
    {"mlp.gate_proj", "mlp.gate_up_proj"},
    {"mlp.up_proj", "mlp.gate_up_proj"},
};

const Names& names_of(TensorId id) { return kNames[static_cast<size_t>(id)]; }

}  // namespace

std::string tensor_name(const ModelConfig& config, TensorId id, uint32_t layer, const char* suffix) {
  const Names& names = names_of(id);
  if (config.gguf_names) return tensor_label(id, layer) + suffix;
  if (config.family == "gemma3" && id == TensorId::kFfnNorm) {
    return config.huggingface_prefix + format_text("layers.%u.pre_feedforward_layernorm%s", layer, suffix);
  }
  if (id == TensorId::kOutput) return std::string(names.huggingface) + suffix;
  const std::string& prefix = config.huggingface_prefix;
  if (!names.in_layer) return prefix + names.huggingface + suffix;
  return prefix + format_text("layers.%u.%s%s", layer, names.huggingface, suffix);
}

std::string fused_tensor_name(const std::string& name) {
  for (const Fused& row : kFused) {
    if (!name.ends_with(row.part)) continue;
    const std::string prefix = name.substr(0, name.size() - row.part.size());
    if (prefix.ends_with('.')) return prefix + std::string(row.whole);
  }
  return {};
}

std::optional<uint32_t> layer_of_tensor(const std::string& name) {
  for (const std::string_view before : {"blk.", "layers."}) {
    const size_t at = name.find(before);
    if (at == std::string::npos || (at > 0 && name[at - 1] != '.')) continue;
    uint32_t layer = 0;
    const char* const first = name.data() + at + before.size();
    const char* const last = name.data() + name.size();
    const auto [end, error] = std::from_chars(first, last, layer);
    if (error == std::errc() && end != last && *end == '.') return layer;
  }
  return std::nullopt;
}

}  // namespace doppler::model
