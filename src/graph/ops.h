// The operations of a graph and what they are called with. A new operation is a struct here, a member of Graph, and the
// rules that lower it (src/lowering), the plain one at least. Read next: graph.h.
#pragma once

#include <cstdint>
#include <variant>

#include "base/activation_fn.h"

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
};

struct Embed {
  float scale = 1.0f;  // y = scale * table[token]
};
// y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019), of whole rows.
struct RmsNorm {
  float eps = 0;
};
// The same of each head of a row.
struct HeadNorm {
  float eps = 0;
};
// y = x W^T + b for each of some matrices that read the same x.
struct Linear {};
// Rotary position embedding (Su et al. 2021) of each head: the first rotary_dim of its head_dim values turn, as pairs
// (i, i + rotary_dim/2) (NEOX) or (2i, 2i+1) (GPT-J).
struct Rope {
  uint32_t table = 0;  // which of the model's frequencies: 0 global, 1 of sliding layers
  uint32_t head_dim = 0, rotary_dim = 0;
  bool gpt_j_pairs = false;
};
// Causal attention of this step's rows over the layer's cache, which their k and v join first; grouped heads: query head
// h reads kv head h / (n_heads / n_kv_heads).
struct Attention {
  uint32_t layer = 0;
  uint32_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  float scale = 0;              // of q.k
  uint32_t sliding_window = 0;  // 0: all; W: the last W keys, the row's own included
  float softcap = 0;            // 0: none; c: logits = c * tanh(logits / c)
};
// y = activation(gate) * up (Shazeer 2020).
struct Gated {
  ActivationFn activation = ActivationFn::kSilu;
};
struct Add {};
// y = factor * x, then softcap * tanh(y / softcap) where there is one.
struct Scale {
  float factor = 1;
  float softcap = 0;  // 0: none
};
// q of the row at position p times 1 + beta * ln(1 + floor(p / ctx_len)), behind its rotation (Llama 4).
struct QueryScale {
  float beta = 0;
  uint32_t ctx_len = 1;
};
// xIELU (Huang and Schlag 2024), whose four numbers are a weight: of x > 0 p x^2 + b x, else
// (expm1(min(x, e)) - x) n + b x.
struct Xielu {};
struct LogitsRows {};

using Operation = std::variant<Embed, RmsNorm, HeadNorm, Linear, Rope, Attention, Gated, Add, Scale,
                               QueryScale, Xielu, LogitsRows>;
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
  kLogitsRows
};
inline constexpr uint32_t kOpKindCount = static_cast<uint32_t>(OpKind::kLogitsRows) + 1;
static_assert(std::variant_size_v<Operation> == kOpKindCount);
const char* op_name(OpKind kind);  // "rms_norm"

}  // namespace doppler::graph
