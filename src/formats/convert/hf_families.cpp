// The tables (hf_families.h).
#include "formats/convert/hf_families.h"

#include <algorithm>

namespace doppler::formats {
namespace {

using enum HfDim;

constexpr uint32_t kGemma3 = kHasSandwichNorms | kHasQkNorms | kHasWindow | kHasLocalRope | kHasNormsMinusOne;
// transformers' defaults of Gemma 3's text model, which its config.json leaves out.
constexpr uint32_t kGemmaCtx = 131072, kGemmaVocab = 262208, kGemmaHeads = 8, kGemmaKvHeads = 4,
                   kGemmaHeadDim = 256;

constexpr HfFamily kFamilies[] = {
    {"llama", "llama", kHasPlainNorms | kHasInterleavedRope | kMayHaveBiases, 0, 0, 0, 0, 0},
    // llama.cpp has no architecture of its own for it, nor reads the window, which others do.
    {"mistral", "llama", kHasPlainNorms | kHasInterleavedRope | kHasWindow, 0, 0, 0, 0, 0},
    {"qwen2", "qwen2", kHasPlainNorms | kHasQkvBiases, 0, 0, 0, 0, 0},
    {"qwen3", "qwen3", kHasPlainNorms | kHasQkNorms, 0, 0, 0, 0, 0},
    {"gemma3_text", "gemma3", kGemma3, kGemmaCtx, kGemmaVocab, kGemmaHeads, kGemmaKvHeads, kGemmaHeadDim},
    {"gemma3", "gemma3", kGemma3, kGemmaCtx, kGemmaVocab, kGemmaHeads, kGemmaKvHeads, kGemmaHeadDim},
};

// clang-format off
constexpr HfTensor kTensors[] = {
    {"embed_tokens.weight",               "token_embd.weight",           false, kVocab,  kHidden, kHasAlways},
    {"input_layernorm.weight",            "attn_norm.weight",            true,  kNone,   kHidden, kHasAlways, true},
    {"self_attn.q_proj.weight",           "attn_q.weight",               true,  kQRows,  kHidden, kHasAlways},
    {"self_attn.q_proj.bias",             "attn_q.bias",                 true,  kNone,   kQRows,  kHasQkvBiases},
    {"self_attn.k_proj.weight",           "attn_k.weight",               true,  kKvRows, kHidden, kHasAlways},
    {"self_attn.k_proj.bias",             "attn_k.bias",                 true,  kNone,   kKvRows, kHasQkvBiases},
    {"self_attn.v_proj.weight",           "attn_v.weight",               true,  kKvRows, kHidden, kHasAlways},
    {"self_attn.v_proj.bias",             "attn_v.bias",                 true,  kNone,   kKvRows, kHasQkvBiases},
    {"self_attn.q_norm.weight",           "attn_q_norm.weight",          true,  kNone,   kHeadDim, kHasQkNorms, true},
    {"self_attn.k_norm.weight",           "attn_k_norm.weight",          true,  kNone,   kHeadDim, kHasQkNorms, true},
    {"self_attn.o_proj.weight",           "attn_output.weight",          true,  kHidden, kQRows,  kHasAlways},
    {"self_attn.o_proj.bias",             "attn_output.bias",            true,  kNone,   kHidden, kHasOutBias},
    {"post_attention_layernorm.weight",   "ffn_norm.weight",             true,  kNone,   kHidden, kHasPlainNorms, true},
    {"post_attention_layernorm.weight",   "post_attention_norm.weight",  true,  kNone,   kHidden, kHasSandwichNorms, true},
    {"pre_feedforward_layernorm.weight",  "ffn_norm.weight",             true,  kNone,   kHidden, kHasSandwichNorms, true},
    {"mlp.gate_proj.weight",              "ffn_gate.weight",             true,  kFfn,    kHidden, kHasAlways},
    {"mlp.gate_proj.bias",                "ffn_gate.bias",               true,  kNone,   kFfn,    kHasMlpBiases},
    {"mlp.up_proj.weight",                "ffn_up.weight",               true,  kFfn,    kHidden, kHasAlways},
    {"mlp.up_proj.bias",                  "ffn_up.bias",                 true,  kNone,   kFfn,    kHasMlpBiases},
    {"mlp.down_proj.weight",              "ffn_down.weight",             true,  kHidden, kFfn,    kHasAlways},
    {"mlp.down_proj.bias",                "ffn_down.bias",               true,  kNone,   kHidden, kHasMlpBiases},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight",        true,  kNone,   kHidden, kHasSandwichNorms, true},
    {"norm.weight",                       "output_norm.weight",          false, kNone,   kHidden, kHasAlways, true},
    {"lm_head.weight",                    "output.weight",               false, kVocab,  kHidden, kHasAlways},
};
// clang-format on

}  // namespace

Result<const HfFamily*> find_hf_family(std::string_view model_type) {
  std::string known;
  for (const HfFamily& family : kFamilies) {
    if (model_type == family.model_type) return &family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  return fail(ErrorKind::kUnsupported,
              "Models of type \"%s\" are not converted from Hugging Face's layout to GGUF; these are: %s.",
              printable(model_type).c_str(), known.c_str());
}

bool is_hf_family_of_gguf(std::string_view architecture) {
  return std::ranges::any_of(
      kFamilies, [&](const HfFamily& family) { return architecture == family.gguf_architecture; });
}

std::string gguf_name_of(std::string_view name) {
  for (const char* prefix : {"model.language_model.", "language_model.model.", "language_model.", "model."}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(std::string_view(prefix).size());
    break;
  }
  constexpr std::string_view kLayers = "layers.";
  std::string layer;
  if (name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos || dot == 0) return {};
    layer = name.substr(0, dot);
    name.remove_prefix(dot + 1);
  }
  for (const HfTensor& row : kTensors) {
    if (row.in_layer != !layer.empty() || row.is_norm || name != row.hf) continue;
    return (layer.empty() ? "" : "blk." + layer + ".") + row.gguf;
  }
  return {};
}

std::span<const HfTensor> hf_tensors() { return kTensors; }

}  // namespace doppler::formats
