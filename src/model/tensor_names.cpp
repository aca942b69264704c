#include "model/tensor_names.h"

#include <charconv>
#include <string_view>

#include "base/text.h"

namespace doppler::model {
namespace {

struct Names {
  Role role;
  bool in_layer;
  const char* gguf;
  const char* huggingface;
};

constexpr Names kNames[] = {
    {Role::kEmbedding, false, "token_embd", "embed_tokens"},
    {Role::kOutput, false, "output", "lm_head"},
    {Role::kFinalNorm, false, "output_norm", "norm"},
    {Role::kAttentionNorm, true, "attn_norm", "input_layernorm"},
    {Role::kQ, true, "attn_q", "self_attn.q_proj"},
    {Role::kK, true, "attn_k", "self_attn.k_proj"},
    {Role::kV, true, "attn_v", "self_attn.v_proj"},
    {Role::kAttentionOut, true, "attn_output", "self_attn.o_proj"},
    {Role::kFfnNorm, true, "ffn_norm", "post_attention_layernorm"},
    {Role::kGate, true, "ffn_gate", "mlp.gate_proj"},
    {Role::kUp, true, "ffn_up", "mlp.up_proj"},
    {Role::kDown, true, "ffn_down", "mlp.down_proj"},
    {Role::kQNorm, true, "attn_q_norm", "self_attn.q_norm"},
    {Role::kKNorm, true, "attn_k_norm", "self_attn.k_norm"},
    {Role::kPostAttentionNorm, true, "post_attention_norm", "post_attention_layernorm"},
    {Role::kPreFfnNorm, true, "ffn_norm", "pre_feedforward_layernorm"},
    {Role::kPostFfnNorm, true, "post_ffw_norm", "post_feedforward_layernorm"},
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

const Names& names_of(Role role) { return kNames[static_cast<size_t>(role)]; }

}  // namespace

std::string tensor_name(const ModelConfig& config, Role role, uint32_t layer, const char* suffix) {
  const Names& names = names_of(role);
  if (config.gguf_names) return role_label(role, layer) + suffix;
  if (role == Role::kOutput) return std::string(names.huggingface) + suffix;
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

std::string role_label(Role role, uint32_t layer) {
  const Names& names = names_of(role);
  return names.in_layer ? format_text("blk.%u.%s", layer, names.gguf) : std::string(names.gguf);
}

}  // namespace doppler::model
