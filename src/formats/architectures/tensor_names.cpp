#include "formats/architectures/tensor_names.h"

#include <algorithm>
#include <charconv>
#include <ranges>

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
    {.id = kAttentionGate,
     .gguf = "attn_q",
     .huggingface = "self_attn.q_proj",
     .shape = {kQRows, kHidden},
     .part = 1,
     .parts = 2},
    {kConvIn, "shortconv.in_proj", "conv.in_proj", {kConvInRows, kHidden}},
    {.id = kConv,
     .gguf = "ssm_conv1d",
     .huggingface = "linear_attn.conv1d",
     .shape = {kConvChannels, kOne, kConvKernel},
     .is_vector = true},
    {.id = kConvBias,
     .gguf = "ssm_conv1d.bias",
     .huggingface = "linear_attn.conv1d.bias",
     .shape = {kConvChannels},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {kConvOut, "shortconv.out_proj", "conv.out_proj", {kHidden, kConvChannels}},
    {kDeltaQkv, "attn_qkv", "linear_attn.in_proj_qkv", {kConvChannels, kHidden}},
    {kDeltaGate, "attn_gate", "linear_attn.in_proj_z", {kValueRows, kHidden}},
    {kDeltaRate, "ssm_beta", "linear_attn.in_proj_b", {kValueHeads, kHidden}},
    {kDeltaDecay, "ssm_alpha", "linear_attn.in_proj_a", {kValueHeads, kHidden}},
    {kMambaIn, "ssm_in", "mamba.in_proj", {kMambaInRows, kHidden}},
    {.id = kStateDecay,
     .gguf = "ssm_a",
     .huggingface = "linear_attn.A_log",
     .shape = {kValueHeads},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true,
     .is_log = true},
    {.id = kStateTimeBias,
     .gguf = "ssm_dt.bias",
     .huggingface = "linear_attn.dt_bias",
     .shape = {kValueHeads},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateSkip,
     .gguf = "ssm_d",
     .huggingface = "mamba.D",
     .shape = {kValueHeads, kOne},
     .gguf_suffix = "",
     .huggingface_suffix = "",
     .is_vector = true},
    {.id = kStateNorm,
     .gguf = "ssm_norm",
     .huggingface = "linear_attn.norm",
     .shape = {kValueDim},
     .is_vector = true},
    {kStateOut, "ssm_out", "linear_attn.out_proj", {kHidden, kValueRows}},
    {kXielu, "ffn_xielu", "mlp.act_fn", {}, /*is_norm=*/true},
    {kSinks, "attn_sinks", "self_attn.sinks", {kHeads}, /*is_norm=*/true, ".weight", ""},
    {kRouter, "ffn_gate_inp", "mlp.gate", {kExperts, kHidden}},
    {kRouterBias,
     "exp_probs_b",
     "mlp.gate.e_score_correction_bias",
     {kExperts},
     /*is_norm=*/true,
     ".bias",
     ""},
    {kExpertGate, "ffn_gate_exps", "mlp.experts.gate_proj", {kExperts, kExpertFfn, kHidden}},
    {kExpertUp, "ffn_up_exps", "mlp.experts.up_proj", {kExperts, kExpertFfn, kHidden}},
    {kExpertDown, "ffn_down_exps", "mlp.experts.down_proj", {kExperts, kHidden, kExpertFfn}},
    {kSharedGate, "ffn_gate_shexp", "mlp.shared_expert.gate_proj", {kSharedFfn, kHidden}},
    {kSharedUp, "ffn_up_shexp", "mlp.shared_expert.up_proj", {kSharedFfn, kHidden}},
    {kSharedDown, "ffn_down_shexp", "mlp.shared_expert.down_proj", {kHidden, kSharedFfn}},
    {kSharedRouter, "ffn_gate_inp_shexp", "mlp.shared_expert_gate", {kOne, kHidden}},
    {kExpertsIn, "ffn_latent_down", "mixer.fc1_latent_proj", {kExpertRow, kHidden}},
    {kExpertsOut, "ffn_latent_up", "mixer.fc2_latent_proj", {kHidden, kExpertRow}},
    {kQDown, "attn_q_a", "self_attn.q_a_proj", {kQRank, kHidden}},
    {kQDownNorm, "attn_q_a_norm", "self_attn.q_a_layernorm", {kQRank}, /*is_norm=*/true},
    {kQUp, "attn_q_b", "self_attn.q_b_proj", {kLatentQRows, kQRank}},
    {kLatent, "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", {kLatentRows, kHidden}},
    {kLatentNorm, "attn_kv_a_norm", "self_attn.kv_a_layernorm", {kKvRank}, /*is_norm=*/true},
    {kKeyUp, "attn_k_b", "self_attn.k_b_proj", {kHeads, kKvRank, kNopeDim}},
    {kValueUp, "attn_v_b", "self_attn.v_b_proj", {kHeads, kLatentValueDim, kKvRank}},
    {kRouterNorm, "ffn_gate_inp.scale", "router.scale", {kHidden}, /*is_norm=*/true, "", ""},
    {kExpertScale, "ffn_down_exps.scale", "router.per_expert_scale", {kExperts}, /*is_norm=*/true, "", ""},
    {kExpertNorm, "pre_ffw_norm_2", "pre_feedforward_layernorm_2", {kHidden}, /*is_norm=*/true},
    {kDenseOutNorm, "post_ffw_norm_1", "post_feedforward_layernorm_1", {kHidden}, /*is_norm=*/true},
    {kExpertOutNorm, "post_ffw_norm_2", "post_feedforward_layernorm_2", {kHidden}, /*is_norm=*/true},
    {kLayerTable, "per_layer_token_embd", "embed_tokens_per_layer", {kLayerInputVocab, kAllLayerInputs}},
    {kLayerTableProj, "per_layer_model_proj", "per_layer_model_projection", {kAllLayerInputs, kHidden}},
    {kLayerTableNorm, "per_layer_proj_norm", "per_layer_projection_norm", {kLayerInput}, /*is_norm=*/true},
    {kLayerInputGate, "inp_gate", "per_layer_input_gate", {kLayerInput, kHidden}},
    {kLayerInputProj, "proj", "per_layer_projection", {kHidden, kLayerInput}},
    {kLayerInputNorm, "post_norm", "post_per_layer_input_norm", {kHidden}, /*is_norm=*/true},
    {kLayerScale, "layer_output_scale", "layer_scalar", {kOne}, /*is_norm=*/true, ".weight", ""},
    {kAltupIn1, "altup_proj.0", "altup_projections.0", {kHidden, kHidden}},
    {kAltupIn2, "altup_proj.1", "altup_projections.1", {kHidden, kHidden}},
    {kAltupIn3, "altup_proj.2", "altup_projections.2", {kHidden, kHidden}},
    {kAltupOut1, "altup_unembd_proj.0", "altup_unembed_projections.0", {kHidden, kHidden}},
    {kAltupOut2, "altup_unembd_proj.1", "altup_unembed_projections.1", {kHidden, kHidden}},
    {kAltupOut3, "altup_unembd_proj.2", "altup_unembed_projections.2", {kHidden, kHidden}},
    {kAltupRouterNorm, "altup_router_norm", "altup.router_norm", {kHidden}, /*is_norm=*/true},
    {kAltupRouter, "altup_router", "altup.modality_router", {kStreams, kHidden}},
    {.id = kAltupPredict,
     .gguf = "altup_predict_coef",
     .huggingface = "altup.prediction_coefs",
     .shape = {kStreamPairs, kStreams},
     .is_vector = true},
    {.id = kAltupCorrect,
     .gguf = "altup_correct_coef",
     .huggingface = "altup.correction_coefs",
     .shape = {kStreams, kStreams},
     .is_vector = true},
    {.id = kAltupScale,
     .gguf = "altup_correct_scale",
     .huggingface = "altup.correct_output_scale",
     .shape = {kHidden},
     .is_norm = true,
     .huggingface_suffix = ""},
    {kLaurelLeft, "laurel_l", "laurel.linear_left", {kLaurelRank, kHidden}},
    {kLaurelRight, "laurel_r", "laurel.linear_right", {kHidden, kLaurelRank}},
    {kLaurelNorm, "laurel_post_norm", "laurel.post_laurel_norm", {kHidden}, /*is_norm=*/true},
    {kDense1, "dense_2", "dense.0.linear", {kDense1Rows, kHidden}},
    {kDense2, "dense_3", "dense.1.linear", {kDense2Rows, kDense1Rows}},
    {.id = kPositions,
     .gguf = "position_embd",
     .huggingface = "embeddings.position_embeddings",
     .shape = {kPositionCount, kHidden},
     .is_vector = true},
    {.id = kTokenTypes,
     .gguf = "token_types",
     .huggingface = "embeddings.token_type_embeddings",
     .shape = {kTypeCount, kHidden},
     .is_vector = true},
    {kEmbeddingNorm, "token_embd_norm", "embeddings.LayerNorm", {kHidden}, /*is_norm=*/true},
    {.id = kEmbeddingNormBias,
     .gguf = "token_embd_norm.bias",
     .huggingface = "embeddings.LayerNorm.bias",
     .shape = {kHidden},
     .is_norm = true,
     .gguf_suffix = "",
     .huggingface_suffix = ""},
    {.id = kPostAttentionNormBias,
     .gguf = "attn_output_norm.bias",
     .huggingface = "attention.output.LayerNorm.bias",
     .shape = {kHidden},
     .is_norm = true,
     .gguf_suffix = "",
     .huggingface_suffix = ""},
    {.id = kPostFfnNormBias,
     .gguf = "layer_output_norm.bias",
     .huggingface = "output.LayerNorm.bias",
     .shape = {kHidden},
     .is_norm = true,
     .gguf_suffix = "",
     .huggingface_suffix = ""},
    {kClassDense, "cls", "pooler.dense", {kHidden, kHidden}},
    {kClassNorm, "cls.norm", "head.norm", {kHidden}, /*is_norm=*/true},
    {kClassOut, "cls.output", "classifier", {kClassCount, kHidden}},
    {kNextProjection, "nextn.eh_proj", "fc", {kHidden, kTwoHidden}},
    {kNextEmbeddingNorm, "nextn.enorm", "pre_fc_norm_embedding", {kHidden}, /*is_norm=*/true},
    {kNextHiddenNorm, "nextn.hnorm", "pre_fc_norm_hidden", {kHidden}, /*is_norm=*/true},
    {kNextNorm, "nextn.shared_head_norm", "norm", {kHidden}, /*is_norm=*/true},
};

constexpr bool in_order_of_ids() {
  for (size_t i = 0; i < std::size(kUsual); ++i) {
    if (kUsual[i].id != static_cast<TensorId>(i)) return false;
  }
  return std::size(kUsual) == static_cast<size_t>(kPatchEmbed);  // towers have all their rows (towers/)
}
static_assert(in_order_of_ids());

constexpr FusedNames kQkv[] = {
    {{"attn_q", "attn_k", "attn_v"}, "attn_qkv"},
    {{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, "self_attn.qkv_proj"},
    {{"attn.Wq", "attn.Wk", "attn.Wv"}, "attn.Wqkv"},
    {{"attn.q", "attn.k", "attn.v"}, "attn.qkv"},
};
constexpr FusedNames kGateUp[] = {
    {{"ffn_gate", "ffn_up", ""}, "ffn_gate_up"},
    {{"mlp.gate_proj", "mlp.up_proj", ""}, "mlp.gate_up_proj"},
    {{"mlp.Wi_gate", "mlp.Wi_up", ""}, "mlp.Wi"},
};

// As llama.cpp has gates and ups of the families whose checkpoints have them as one.
constexpr FusedNames kGateUpAsUp[] = {{{"ffn_gate", "", ""}, "ffn_up"}};

// The number of rows of one matrix until the next, in a tensor that holds several matrices in turn.
uint32_t part_rows_of(const ModelConfig& config, const TensorRow& row, uint32_t layer) {
  if (row.parts == 1) return 0;
  const RecurrentConfig& c = config.recurrent;
  const bool is_of_delta = row.id == kDeltaRate || row.id == kDeltaDecay;
  return is_of_delta ? c.n_value_heads / c.n_key_heads : head_dim_of(config, layer);
}

// True for tensors that are no part of the model, so that the prefix of published checkpoints is not theirs. BERT's
// pooler is a part.
bool stands_alone(const TensorRow& row) {
  const bool is_pooler = row.huggingface.starts_with("pooler.");
  return row.id == kDense1 || row.id == kDense2 || (row.id == kClassDense && !is_pooler) ||
         row.id == kClassNorm || row.id == kClassOut;
}

// The prefix that published checkpoints have before the tensors of the next-token layer, whatever precedes the others.
constexpr std::string_view kNextPrefix = "mtp.";

}  // namespace

const TensorRow& tensor_row(const Architecture& architecture, TensorId id) {
  for (const TensorRow& row : architecture.own_tensors) {
    if (row.id == id) return row;
  }
  return kUsual[std::min(static_cast<size_t>(id), std::size(kUsual) - 1)];
}

std::string tensor_name(const ModelConfig& config, TensorId id, uint32_t layer, const char* suffix) {
  const Architecture& architecture = architecture_of(config);
  const TensorRow& row = tensor_row(architecture, id);
  const std::string_view name = config.gguf_names ? row.gguf : row.huggingface;
  std::string prefix;
  if (!config.gguf_names && name.starts_with('/')) {
    return config.huggingface_head_prefix + std::string(name.substr(1)) +
           std::string(suffix ? suffix : row.huggingface_suffix);
  }
  const bool is_next = !config.gguf_names && is_in_layer(id) && is_next_layer(config, layer);
  if (is_next) {
    prefix = kNextPrefix;
    if (!is_of_next_layer(id)) prefix += format_text("layers.%u.", layer - config.n_layers);
  } else if (!config.gguf_names && !stands_alone(row)) {
    prefix = id == kOutput ? config.huggingface_head_prefix : config.huggingface_prefix;
  }
  const std::string_view own = config.gguf_names ? row.gguf_suffix : row.huggingface_suffix;
  const std::string end(suffix ? suffix : own);
  if (const size_t place = name.find('#'); place != name.npos) {
    return prefix + std::string(name.substr(0, place)) + format_text("%u", layer) +
           std::string(name.substr(place + 1)) + end;
  }
  if (is_in_layer(id) && !is_next) {
    const std::string_view layers =
        config.gguf_names ? architecture.gguf.layers : architecture.huggingface.layers;
    prefix += std::string(layers) + format_text("%u.", layer);
  }
  return prefix + std::string(name) + end;
}

StoredTensor stored_tensor(const ModelConfig& config, TensorId id, uint32_t layer) {
  const Architecture& architecture = architecture_of(config);
  const TensorRow& row = tensor_row(architecture, id);
  const bool is_stacked = config.gguf_names && row.gguf_parts > 1;
  std::vector<uint64_t> shape = row.shape.extents(config, layer);
  const uint32_t part_rows = is_stacked ? static_cast<uint32_t>(shape[0]) : part_rows_of(config, row, layer);
  return {.name = tensor_name(config, id, layer, ""),
          .shape = std::move(shape),
          .must_have_bias = must_have_bias(config, id),
          .offset = row.is_norm && !config.gguf_names ? architecture.huggingface.norm_offset : 0,
          .suffix = std::string(config.gguf_names ? row.gguf_suffix : row.huggingface_suffix),
          .is_log = row.is_log && !config.gguf_names,
          .part = is_stacked ? row.gguf_part : row.part,
          .parts = is_stacked ? row.gguf_parts : row.parts,
          .part_rows = part_rows};
}

std::vector<uint64_t> without_ones(std::span<const uint64_t> shape) {
  std::vector<uint64_t> out;
  for (const uint64_t extent : shape) {
    if (extent != 1) out.push_back(extent);
  }
  return out;
}

bool is_same_shape(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  return without_ones(a) == without_ones(b);
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

bool is_next_name(std::string_view huggingface_name) { return huggingface_name.starts_with(kNextPrefix); }

std::optional<uint32_t> layer_of_tensor(const std::string& name) {
  if (is_next_name(name)) return std::nullopt;
  for (const std::string_view before : {"blk.", "layers.", "layer."}) {
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
  for (const char* prefix :
       {"model.language_model.", "language_model.model.", "language_model.", "model.", "backbone."}) {
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
  const auto find_in = [&](std::span<const TensorRow> rows) {
    for (const TensorRow& row : rows) {
      const bool fits = is_in_layer(row.id) == !layer.empty() && name == row.huggingface;
      if (!fits || row.is_norm || row.huggingface_suffix != kWeight) continue;
      return (layer.empty() ? "" : "blk." + layer + ".") + std::string(row.gguf) + std::string(suffix);
    }
    return std::string();
  };
  std::string found = find_in(kUsual);
  for (const Architecture* row : all_architectures()) {
    if (found.empty()) found = find_in(row->own_tensors);
  }
  return found;
}

}  // namespace doppler::formats
