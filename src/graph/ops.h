// The operations of a graph and what they are called with. A new operation is a struct here, a member of Graph, and the
// rules that lower it (src/lowering), the plain one at least. Read next: graph.h.
#pragma once

#include <cstdint>
#include <variant>

#include "base/activation_fn.h"
#include "base/altup.h"
#include "base/router_score.h"

namespace doppler::graph {

// Handles, by their places in the graph.
struct Value {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  bool operator==(const Value&) const = default;
};
struct Matrix {
  uint32_t index = UINT32_MAX;
};
struct Vector {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
};

struct Embed {
  float scale = 1.0f;    // y = scale * table[token]
  bool is_next = false;  // for the token after each row's: for the next-token layer
};
// y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019), of whole rows.
struct RmsNorm {
  float eps = 0;
};
// The same of each head of a row; without a weight the weight is 1.
struct HeadNorm {
  float eps = 0;
  uint32_t head_dim = 0;
};
// y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias (Ba et al. 2016), of whole rows.
struct LayerNorm {
  float eps = 0;
};
// y = x + positions[position of the row] + types[type of its token]: learned embeddings (Devlin et al. 2018).
struct Positions {};
// y = x W^T + b for each of some matrices that read the same x.
struct Linear {};
// Rotary position embedding (Su et al. 2021) of each head: the first rotary_dim of its head_dim values turn, as pairs
// (i, i + rotary_dim/2) (NEOX) or (2i, 2i+1) (GPT-J).
struct Rope {
  uint32_t table = 0;  // which of the model's frequencies: 0 global, 1 of sliding layers
  uint32_t head_dim = 0, rotary_dim = 0;
  bool gpt_j_pairs = false;
};
// Attention of this step's rows over the layer's cache, which their k and v join first. Heads are grouped: query head h
// reads kv head h / (n_heads / n_kv_heads). Attention is causal, or bidirectional: then the step's rows are the whole
// text. Without k and v it reads the cache of an earlier layer.
struct Attention {
  uint32_t layer = 0;
  uint32_t cache_layer = 0;  // whose cache: layer, or without k and v an earlier one
  uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  float scale = 0;  // of q.k
  // 0: all keys. W: the last W keys, the row's own included; if bidirectional, those at most W / 2 away.
  uint32_t sliding_window = 0;
  float softcap = 0;  // 0: none; c: logits = c * tanh(logits / c)
  bool bidirectional = false;
};
// y = activation(x)
struct Activate {
  ActivationFn activation = ActivationFn::kGeluErf;
};
// y = activation(gate) * up (Shazeer 2020). With a limit c (OpenAI 2025), whose activation is then not asked:
// y = g * sigmoid(1.702 g) * (u + 1), g = min(gate, c), u = up within +-c.
struct Gated {
  ActivationFn activation = ActivationFn::kSilu;
  float limit = 0;  // 0: none
};
struct Add {};
// y = factor * x, then softcap * tanh(y / softcap) unless softcap is 0.
struct Scale {
  float factor = 1;
  float softcap = 0;  // 0: none
};
// q of the row at position p times 1 + beta * ln(1 + floor(p / ctx_len)), after its rotation (Llama 4).
struct QueryScale {
  float beta = 0;
  uint32_t ctx_len = 1;
};
// xIELU (Huang and Schlag 2024), whose four numbers are a weight: of x > 0 p x^2 + b x, else
// (expm1(min(x, e)) - x) n + b x.
struct Xielu {};
// The experts that a row is sent to and their weights, from the logits of its router: kernels/moe/route.h has the
// formulas by these names. The result has 2 * n_used columns that only ExpertLinear and ExpertSum read.
struct Route {
  uint32_t n_used = 0;
  RouterScore score = RouterScore::kSoftmax;
  uint32_t n_groups = 1, groups_used = 1;
  GroupScore group_score = GroupScore::kMax;
  bool norm_weights = false;
  float norm_epsilon = 0, weight_scale = 1;
  bool scales_experts = false;  // the last vector multiplies each expert's weight
};
// y = x W_e^T + b_e for each expert e of a row, the outputs of its slots side by side.
struct ExpertLinear {
  uint32_t n_experts = 0, n_used = 0;
};
// y = sum over a row's slots of weight * x, plus a shared expert's result if there is one, which a gate may multiply by
// sigmoid(gate).
struct ExpertSum {
  uint32_t n_experts = 0, n_used = 0;
};
struct LogitsRows {};
// Causal depthwise convolution of each channel, over the layer's state of its last kernel - 1 inputs:
// y[p] = activation(b + sum over j of w[j] * u[p - kernel + 1 + j]). Gated (LFM2): x is B, C and v beside one another,
// u = B * v and y is multiplied by C.
struct CausalConv {
  uint32_t layer = 0;
  uint32_t kernel = 0;
  ActivationFn activation = ActivationFn::kNone;
  bool is_gated = false;
};
// Linear recurrences over the layer's state, a matrix [key_dim, value_dim] for each value head. Head h has the keys and
// queries of head h / (n_heads / n_key_heads), or if tiled of h % n_key_heads. Formulas: kernels/recurrent/scan.h.
struct GatedDelta {  // Yang et al. 2024; x: q, k, v
  uint32_t layer = 0;
  uint32_t n_heads = 0, n_key_heads = 0, key_dim = 0, value_dim = 0;
  bool is_tiled = false;
};
struct Mamba2 {  // Dao and Gu 2024; x: values, keys (B), queries (C)
  uint32_t layer = 0;
  uint32_t n_heads = 0, n_key_heads = 0, key_dim = 0, value_dim = 0;
};
// RMSNorm of each group of columns, times silu of a gate: before the norm, or after it.
struct GatedNorm {
  float eps = 0;
  uint32_t group = 0;
  bool gate_first = false;
};
// y = x * sigmoid(gate)
struct OutputGate {};
// Routes to all of n experts in their order, with weight 1: what heads have apart is a product with experts, too.
struct EveryExpert {
  uint32_t n = 0;
};
// Columns [first, first + n) of each head of a row, one after another.
struct HeadPart {
  uint32_t head_dim = 0, first = 0, n = 0;
};
// Multi-head latent attention (DeepSeek-AI 2024) as attention on one head. For each head of q [nope_dim + rope_dim]:
// the part that rotates, and the other part's product with the key's matrix [rank]. For the key: its rotating part and
// the latent. For the value: zeros and the latent.
struct LatentHeads {
  uint32_t n_heads = 0, nope_dim = 0, rope_dim = 0, rank = 0;
};

// y = activation(x) * u, u a value or a weight, of as many columns or of one.
struct Multiply {
  ActivationFn activation = ActivationFn::kNone;
};
// Columns [first, first + those of the output) of x, where they lie.
struct Slice {
  uint32_t first = 0;
};
// y = max(x - (mean + deviations * standard deviation), 0) of each row: about a share of normal numbers stays.
struct Sparsify {
  float deviations = 0;
};
// The columns of x, then those of y.
struct Concat {};
// AltUp (Baykal et al. 2023), whose formulas are in kernels/altup/altup.h.
struct AltupMatch {  // the first stream, and projections (of itself or of the others) that get its magnitude
  bool is_mean = false;  // true: their mean; false: each stream
};
struct AltupPredict {  // of the streams before a layer
  float router_scale = 1;
};
struct AltupCorrect {  // by what the layer made of the first
  float router_scale = 1;
};

// Rows that the step brings, by number: patches of a picture, or the rows that an earlier plan left.
struct Input {
  uint32_t index = 0;
};
// y = x + weighted entries of a learned table. The step says for each row which entries and weights: a table of
// positions is resampled to a picture's size so.
struct TableRows {};
// Rows of a prompt that stand for a picture get the picture's values, or have them added.
struct ImageRows {
  uint32_t index =
      0;  // 0: the values that replace embeddings; 1, ...: those that are added after layer 0, ...
  bool adds = false;
};

// The mean of runs of as many columns as y has.
struct MeanParts {};
// y = x, but at least limits[first] and at most limits[first + 1].
struct Clamp {
  uint32_t first = 0;
};
// y = (x - mean) * scale, two numbers of each column.
struct Standardise {};

using Operation =
    std::variant<Embed, RmsNorm, HeadNorm, Linear, Rope, Attention, Gated, Add, Scale, QueryScale, Xielu,
                 LogitsRows, Route, ExpertLinear, ExpertSum, CausalConv, GatedDelta, Mamba2, GatedNorm,
                 OutputGate, EveryExpert, HeadPart, LatentHeads, Multiply, Slice, Sparsify, AltupMatch,
                 AltupPredict, AltupCorrect, LayerNorm, Positions, Activate, Concat, Input, TableRows,
                 ImageRows, MeanParts, Clamp, Standardise>;
enum class OpKind : uint8_t {
  kEmbed,
  kRmsNorm,
  kHeadNorm,
  kLinear,
  kRope,
  kAttention,
  kGated,
  kAdd,
  kScale,
  kQueryScale,
  kXielu,
  kLogitsRows,
  kRoute,
  kExpertLinear,
  kExpertSum,
  kCausalConv,
  kGatedDelta,
  kMamba2,
  kGatedNorm,
  kOutputGate,
  kEveryExpert,
  kHeadPart,
  kLatentHeads,
  kMultiply,
  kSlice,
  kSparsify,
  kAltupMatch,
  kAltupPredict,
  kAltupCorrect,
  kLayerNorm,
  kPositions,
  kActivate,
  kConcat,
  kInput,
  kTableRows,
  kImageRows,
  kMeanParts,
  kClamp,
  kStandardise,
};
inline constexpr uint32_t kOpKindCount = static_cast<uint32_t>(OpKind::kStandardise) + 1;
static_assert(std::variant_size_v<Operation> == kOpKindCount);
const char* op_name(OpKind kind);  // "rms_norm"
// True if it has a recurrent state.
constexpr bool has_state(OpKind kind) {
  return kind == OpKind::kCausalConv || kind == OpKind::kGatedDelta || kind == OpKind::kMamba2;
}

}  // namespace doppler::graph
