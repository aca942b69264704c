#include "graph/describe.h"

#include "base/text.h"

namespace doppler::graph {
namespace {

// An operation's arguments besides values and weights; empty: none.
struct Attributes {
  std::string operator()(const Embed& op) const {
    std::string text = op.is_next ? "next tokens" : "";
    if (op.scale != 1)
      text += format_text("%sscale %g", text.empty() ? "" : ", ", static_cast<double>(op.scale));
    return text;
  }
  std::string operator()(const RmsNorm& op) const {
    return format_text("eps %g", static_cast<double>(op.eps));
  }
  std::string operator()(const HeadNorm& op) const {
    return format_text("eps %g", static_cast<double>(op.eps));
  }
  std::string operator()(const Linear&) const { return ""; }
  std::string operator()(const Rope& op) const {
    return format_text("table %u, %u of %u, %s pairs", op.table, op.rotary_dim, op.head_dim,
                       op.gpt_j_pairs ? "GPT-J" : "NEOX");
  }
  std::string operator()(const Attention& op) const {
    std::string text = format_text("%u heads on %u of %u, scale %g", op.n_heads, op.n_kv_heads, op.head_dim,
                                   static_cast<double>(op.scale));
    if (op.cache_layer != op.layer) text += format_text(", cache of layer %u", op.cache_layer);
    if (op.sliding_window != 0) text += format_text(", window %u", op.sliding_window);
    if (op.softcap != 0) text += format_text(", softcap %g", static_cast<double>(op.softcap));
    return op.bidirectional ? text + ", bidirectional" : text;
  }
  std::string operator()(const LayerNorm& op) const {
    return format_text("eps %g", static_cast<double>(op.eps));
  }
  std::string operator()(const Positions&) const { return ""; }
  std::string operator()(const Activate& op) const { return activation_name(op.activation); }
  std::string operator()(const Gated& op) const {
    if (op.limit != 0) return format_text("limit %g", static_cast<double>(op.limit));
    return activation_name(op.activation);
  }
  std::string operator()(const Add&) const { return ""; }
  std::string operator()(const Scale& op) const {
    std::string text = format_text("factor %g", static_cast<double>(op.factor));
    if (op.softcap != 0) text += format_text(", softcap %g", static_cast<double>(op.softcap));
    return text;
  }
  std::string operator()(const QueryScale& op) const {
    return format_text("beta %g of %u positions", static_cast<double>(op.beta), op.ctx_len);
  }
  std::string operator()(const Xielu&) const { return ""; }
  std::string operator()(const LogitsRows&) const { return ""; }
  std::string operator()(const Route& op) const {
    std::string text = format_text("%u, %s", op.n_used, router_score_name(op.score));
    if (op.n_groups != 1) text += format_text(", %u of %u groups", op.groups_used, op.n_groups);
    if (op.norm_weights) text += ", normalised";
    if (op.weight_scale != 1) text += format_text(", scale %g", static_cast<double>(op.weight_scale));
    return text;
  }
  std::string operator()(const ExpertLinear& op) const {
    return format_text("%u of %u experts", op.n_used, op.n_experts);
  }
  std::string operator()(const ExpertSum&) const { return ""; }
  std::string operator()(const CausalConv& op) const {
    return format_text("%u positions, %s%s", op.kernel, activation_name(op.activation),
                       op.is_gated ? ", gated" : "");
  }
  std::string operator()(const GatedDelta& op) const {
    return scan(op.n_heads, op.n_key_heads, op.key_dim, op.value_dim);
  }
  std::string operator()(const Mamba2& op) const {
    return scan(op.n_heads, op.n_key_heads, op.key_dim, op.value_dim);
  }
  std::string operator()(const GatedNorm& op) const {
    return format_text("eps %g, groups of %u, gate %s", static_cast<double>(op.eps), op.group,
                       op.gate_first ? "first" : "last");
  }
  std::string operator()(const OutputGate&) const { return ""; }
  std::string operator()(const EveryExpert& op) const { return format_text("of %u", op.n); }
  std::string operator()(const HeadPart& op) const {
    return format_text("%u from %u on of %u", op.n, op.first, op.head_dim);
  }
  std::string operator()(const LatentHeads& op) const {
    return format_text("%u heads of %u + %u on latents of %u", op.n_heads, op.nope_dim, op.rope_dim, op.rank);
  }
  std::string operator()(const Multiply& op) const {
    return op.activation == ActivationFn::kNone ? "" : activation_name(op.activation);
  }
  std::string operator()(const Slice& op) const { return format_text("from column %u", op.first); }
  std::string operator()(const Sparsify& op) const {
    return format_text("%g deviations", static_cast<double>(op.deviations));
  }
  std::string operator()(const AltupMatch& op) const { return op.is_mean ? "mean" : ""; }
  std::string operator()(const AltupPredict&) const { return ""; }
  std::string operator()(const AltupCorrect&) const { return ""; }
  std::string operator()(const Concat&) const { return ""; }
  std::string operator()(const Input& op) const { return format_text("%u", op.index); }
  std::string operator()(const TableRows&) const { return ""; }
  std::string operator()(const ImageRows& op) const {
    return format_text("%u%s", op.index, op.adds ? ", added" : "");
  }
  std::string operator()(const MeanParts&) const { return ""; }
  std::string operator()(const Clamp& op) const { return format_text("by numbers from %u on", op.first); }
  std::string operator()(const Standardise&) const { return ""; }

 private:
  static std::string scan(uint32_t n_heads, uint32_t n_key_heads, uint32_t key_dim, uint32_t value_dim) {
    return format_text("%u heads of %u on %u of %u", n_heads, value_dim, n_key_heads, key_dim);
  }
};

std::string list_of(std::span<const Value> values, const char* separator) {
  std::string text;
  for (const Value& value : values) text += format_text("%s%%%u", text.empty() ? "" : separator, value.index);
  return text;
}

}  // namespace

std::string shape_text(const Graph& graph, const Node& node) {
  std::string text;
  for (const Value& value : node.outputs) {
    text += format_text("%s[R, %u]", text.empty() ? "" : " ", graph.info(value).columns);
  }
  return text;
}

std::string describe(const Graph& graph, const Node& node) {
  std::string text =
      list_of(node.outputs, " ") + " = " + op_name(node.kind()) + "(" + list_of(node.inputs, ", ") + ")";
  for (const Matrix& matrix : node.matrices) text += " " + graph.info(matrix).label();
  for (const Vector& vector : node.vectors) text += " " + graph.info(vector).label();
  const std::string attributes = std::visit(Attributes(), node.operation);
  return attributes.empty() ? text : text + " (" + attributes + ")";
}

std::string describe(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes())
    text += describe(graph, node) + "  " + shape_text(graph, node) + "\n";
  return text;
}

}  // namespace doppler::graph
