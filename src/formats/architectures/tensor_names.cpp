#include "formats/architectures/tensor_names.h"

#include <charconv>

#include "base/text.h"

namespace doppler::formats {
namespace {

using enum TensorId;
using enum Dim;

// The usual rows, in the order of TensorId.
constexpr TensorRow kUsual[] = {
    {kEmbedding, "token_embd", "embed_tokens", {kVocab, kHidden}},
    {kOutput, "output", "lm_head", {kVocab, kHidden}},
    {kFinalNorm, "output_norm", "norm", {kHidden}, /*is_norm=*/true},
    {kAttentionNorm, "attn_norm", "input_layernorm", {kHidden}, /*is_norm=*/true},
    {kQ, "attn_q", "self_attn.q_proj", {kQRows, kHidden}},
    {kK, "attn_k", "self_attn.k_proj", {kKvRows, kHidden}},
    {kV, "attn_v", "self_attn.v_proj", {kKvRows, kHidden}},
    {kAttentionOut, "attn_output", "self_attn.o_proj", {kHidden, kQRows}},
    {kQNorm, "attn_q_norm", "self_attn.q_norm", {kHeadDim}, /*is_norm=*/true},
    {kKNorm, "attn_k_norm", "self_attn.k_norm", {kHeadDim}, /*is_norm=*/true},
    {kPostAttentionNorm, "post_attention_norm", "post_attention_layernorm", {kHidden}, /*is_norm=*/true},
    {kFfnNorm, "ffn_norm", "post_attention_layernorm", {kHidden}, /*is_norm=*/true},
    {kGate, "ffn_gate", "mlp.gate_proj", {kFfn, kHidden}},
    {kUp, "ffn_up", "mlp.up_proj", {kFfn, kHidden}},
    {kDown, "ffn_down", "mlp.down_proj", {kHidden, kFfn}},
    {kPostFfnNorm, "post_ffw_norm", "post_feedforward_layernorm", {kHidden}, /*is_norm=*/true},
    {kXielu, "ffn_xielu", "mlp.act_fn", {}, /*is_norm=*/true},
};

constexpr bool in_order_of_ids() {
  for (size_t i = 0; i < std::size(kUsual); ++i) {
    if (kUsual[i].id != static_cast<TensorId>(i)) return false;
  }
  return std::size(kUsual) == kTensorIdCount;
}
static_assert(in_order_of_ids());

constexpr FusedNames kQkv[] = {
    {{"attn_q", "attn_k", "attn_v"}, "attn_qkv"},
    {{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, "self_attn.qkv_proj"},
};
constexpr FusedNames kGateUp[] = {
    {{"ffn_gate", "ffn_up", ""}, "ffn_gate_up"},
    {{"mlp.gate_proj", "mlp.up_proj", ""}, "mlp.gate_up_proj"},
};

// As llama.cpp has gates and ups of the families whose checkpoints have them as one.
constexpr FusedNames kGateUpAsUp[] = {{{"ffn_gate", "", ""}, "ffn_up"}};

}  // namespace

const TensorRow& tensor_row(const Architecture& architecture, TensorId id) {
  for (const TensorRow& row : architecture.own_tensors) {
    if (row.id == id) return row;
  }
  return kUsual[static_cast<size_t>(id)];
}

std::string tensor_name(const ModelConfig& config, TensorId id, uint32_t layer, const char* suffix) {
  const TensorRow& row = tensor_row(architecture_of(config), id);
  const std::string_view name = config.gguf_names ? row.gguf : row.huggingface;
  std::string prefix;
  if (!config.gguf_names) prefix = id == kOutput ? config.huggingface_head_prefix : config.huggingface_prefix;
  if (is_in_layer(id)) prefix += format_text(config.gguf_names ? "blk.%u." : "layers.%u.", layer);
  return prefix + std::string(name) + suffix;
}

StoredTensor stored_tensor(const ModelConfig& config, TensorId id, uint32_t layer) {
  const Architecture& architecture = architecture_of(config);
  const TensorRow& row = tensor_row(architecture, id);
  return {.name = tensor_name(config, id, layer, ""),
          .shape = row.shape.extents(config),
          .must_have_bias = must_have_bias(config, id),
          .offset = row.is_norm && !config.gguf_names ? architecture.huggingface.norm_offset : 0};
}

std::vector<StoredTensor> stored_tensors(const ModelConfig& config, std::span<const TensorId> ids,
                                         uint32_t layer) {
  std::vector<StoredTensor> out;
  for (const TensorId id : ids) out.push_back(stored_tensor(config, id, layer));
  return out;
}

std::span<const FusedNames> fused_qkv_names() { return kQkv; }
std::span<const FusedNames> fused_gate_up_names() { return kGateUp; }

std::vector<std::string> fused_tensor_names(const std::string& name) {
  std::vector<std::string> out;
  for (const std::span<const FusedNames> rows :
       {fused_qkv_names(), fused_gate_up_names(), std::span<const FusedNames>(kGateUpAsUp)}) {
    for (const FusedNames& row : rows) {
      for (const std::string_view part : row.parts) {
        if (part.empty() || !name.ends_with(part)) continue;
        const std::string prefix = name.substr(0, name.size() - part.size());
        if (prefix.ends_with('.')) out.push_back(prefix + std::string(row.whole));
      }
    }
  }
  return out;
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

std::string gguf_name_of(std::string_view name) {
  for (const char* prefix : {"model.language_model.", "language_model.model.", "language_model.", "model."}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(std::string_view(prefix).size());
    break;
  }
  constexpr std::string_view kLayers = "layers.", kWeight = ".weight", kBias = ".bias";
  std::string layer;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos || dot == 0) return {};
    layer = name.substr(0, dot);
    name.remove_prefix(dot + 1);
  }
  const std::string_view suffix = name.ends_with(kWeight) ? kWeight : kBias;
  if (!name.ends_with(suffix)) return {};
  name.remove_suffix(suffix.size());
  for (const TensorRow& row : kUsual) {
    if (is_in_layer(row.id) != !layer.empty() || row.is_norm || name != row.huggingface) continue;
    return (layer.empty() ? "" : "blk." + layer + ".") + std::string(row.gguf) + std::string(suffix);
  }
  return {};
}

}  // namespace doppler::formats
