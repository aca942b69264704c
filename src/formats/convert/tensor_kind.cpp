// Tables of name parts (tensor_kind.h); the first row that matches counts.
#include "formats/convert/tensor_kind.h"

#include <algorithm>
#include <charconv>

#include "formats/architectures/tensor_names.h"
#include "formats/projector/projector.h"

namespace doppler::formats {
namespace {

using enum TensorRole;

struct NamePart {
  std::string_view text;
  uint32_t rank;
  TensorRole place = kOtherMatrix;
};
// In the order in which a decoder layer is computed.
constexpr NamePart kInLayer[] = {
    {"post_attention_norm", 9},
    {"attn_q_norm", 5},
    {"attn_k_norm", 6},
    {"self_attn.q_norm", 5},
    {"self_attn.k_norm", 6},
    {"post_attention_layernorm", 10},
    {"pre_feedforward_layernorm", 10},
    {"post_feedforward_layernorm", 18},
    {"post_ffw_norm", 18},
    {"attn_norm", 1},
    {"input_layernorm", 1},
    {"attn_qkv", 2},
    {"qkv_proj", 2},
    {"attn_q", 2},
    {"q_proj", 2},
    {"attn_k", 3},
    {"k_proj", 3},
    {"attn_v", 4, kAttnV},
    {"v_proj", 4, kAttnV},
    {"attn_output", 8},
    {"o_proj", 8},
    {"ffn_norm", 10},
    {"ffn_gate_inp", 12},
    {"mlp.gate.", 12},
    {"block_sparse_moe.gate.", 12},
    {"feed_forward.gate.", 12},
    {"mixer.gate.", 12},
    {"experts.w1", 13},
    {"experts.w3", 14},
    {"experts.w2", 15, kFfnDown},
    {"router", 12},
    {"ffn_gate", 13},
    {"gate_up_proj", 13},
    {"gate_proj", 13},
    {"ffn_up", 14},
    {"up_proj", 14},
    {"ffn_down", 15, kFfnDown},
    {"down_proj", 15, kFfnDown},
    {"output_linear", 15, kFfnDown},
};
constexpr uint32_t kLastRank = 17;

// Small or precise: these keep their type, as in llama.cpp's quantiser.
constexpr std::string_view kKept[] = {"norm",
                                      "ffn_gate_inp",
                                      "mlp.gate.",
                                      "router",
                                      "block_sparse_moe.gate.",
                                      "feed_forward.gate.",
                                      "mixer.gate.",
                                      "shared_expert_gate",
                                      "conv1d",
                                      "shortconv.conv",
                                      "conv.conv",
                                      "position_embd",
                                      "altup",
                                      "laurel",
                                      "token_types",
                                      "position_embeddings",
                                      "token_type_embeddings",
                                      "rope_freqs",
                                      "A_log",
                                      "per_layer_model_proj"};

// Parts of the names of a vision tower's tensors; they keep their type, as llama.cpp keeps it.
constexpr std::string_view kOfTower[] = {"visual.",      "vision_tower.",          "vision_model.",
                                         "embed_vision", "multi_modal_projector.", "connector."};

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

std::optional<uint32_t> number_after(std::string_view name, std::string_view prefix) {
  const size_t at = name.find(prefix);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(at + prefix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end == digits.data() + digits.size() || *end != '.') return std::nullopt;
  return number;
}

}  // namespace

TensorKind tensor_kind(std::string_view name, size_t dimensions) {
  TensorKind kind;
  if (is_projector_tensor(name) ||
      std::ranges::any_of(kOfTower, [&](std::string_view part) { return contains(name, part); })) {
    if (dimensions < 2) kind.role = RdrrRole::kVector;
    kind.load_rank = kLastRank;
    return kind;
  }
  kind.is_next = is_next_name(name);
  if (!kind.is_next) {
    kind.layer = name.starts_with("blk.") ? number_after(name, "blk.") : number_after(name, "layers.");
  }
  if (kind.layer || kind.is_next) {
    kind.after_layers = kind.is_next;
    kind.load_rank = kLastRank;
    for (const NamePart& part : kInLayer) {
      if (!contains(name, part.text)) continue;
      kind.load_rank = part.rank;
      kind.place = part.place;
      break;
    }
    if (contains(name, "_exps") || contains(name, ".experts.")) kind.role = RdrrRole::kExperts;
  } else if (name == "token_embd.weight" || name.ends_with("embed_tokens.weight") ||
             name == "backbone.embeddings.weight") {
    kind.role = RdrrRole::kEmbeddings;
    kind.place = kEmbedding;
  } else if (name == "output.weight" || name.ends_with("lm_head.weight")) {
    kind.role = RdrrRole::kLmHead;
    kind.place = kOutput;
    kind.after_layers = true;
    kind.load_rank = 1;
  } else {
    kind.after_layers = name.starts_with("output_norm") || name.ends_with("model.norm.weight") ||
                        name == "backbone.norm_f.weight";
    kind.load_rank = kind.after_layers ? 0 : 1;
  }
  if (dimensions < 2) {
    kind.role = RdrrRole::kVector;
    return kind;
  }
  kind.quantisable = name.ends_with(".weight");  // not Mamba's decays, which are columns
  for (const std::string_view part : kKept) {
    if (contains(name, part)) kind.quantisable = false;
  }
  return kind;
}

}  // namespace doppler::formats
