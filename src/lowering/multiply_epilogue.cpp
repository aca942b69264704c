// multiply_epilogue: a product, activated, that another value is multiplied by (the embeddings of a layer). It is
// recorded after the operation that makes that value, and multiplies its result itself, instead of with a third
// dispatch.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// The input of a node that its gate multiplies; none: the node is no such gate.
std::optional<Value> gated_by(const Node& node, Value gate) {
  if (node.kind() != OpKind::kMultiply || node.inputs.size() != 2) return std::nullopt;
  if (node.inputs[0] != gate || node.inputs[1] == gate) return std::nullopt;
  return node.inputs[1];
}

// The gated value is bound from its first column on.
std::string refuse_column(const Lowering& l, Value gated) {
  const Node& maker = l.node(l.graph().info(gated).node);
  if (maker.kind() != OpKind::kSlice) return "";
  const uint64_t at = uint64_t{std::get<graph::Slice>(maker.operation).first} * sizeof(float);
  const bool can = at % l.context(l.graph().info(gated).node).plan.caps().binding_alignment == 0;
  return can ? "" : "the gated value does not begin where a binding may";
}

ActivationFn activation_of(const Node& node) { return std::get<graph::Multiply>(node.operation).activation; }

std::string refuse_activation(const Node& node) {
  const ActivationFn activation = activation_of(node);
  const bool has = activation == ActivationFn::kSilu || activation == ActivationFn::kGeluTanh ||
                   activation == ActivationFn::kGeluErf;
  return has ? "" : format_text("its activation is %s", activation_name(activation));
}

Result<Outcome> leave_product(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const std::vector<uint32_t> readers = l.readers(linear.outputs[0]);
  if (readers.size() != 1) return not_matched();
  const Node& gate = l.node(readers[0]);
  const std::optional<Value> gated = gated_by(gate, linear.outputs[0]);
  if (!gated) return not_matched();
  std::string reason = refuse_activation(gate);
  if (reason.empty()) reason = refuse_column(l, *gated);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (l.adapter(index)) return refused("its adapters add to the gate before it is applied");
  if (projection.parts.size() != 1 || projection.has_bias()) {
    return refused("the gate has a bias or several weights");
  }
  DP_TRY(const Wanted wanted, l.wanted(gate.outputs[0]));
  if (wanted.f16) return refused("its output is read as f16 tiles");
  reason = kernels::refuse_epilogue(l.context(index), projection.parts[0].weight, resolved->choices[0],
                                    kernels::EpilogueKind::kGateOf);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(const kernels::Prologue x, l.prologue(linear.inputs[0]));
  if (!std::holds_alternative<Rows>(x) && !std::holds_alternative<DeferredNorm>(x)) {
    return refused("the product that is the gate makes its own input");
  }
  l.set_form(linear.outputs[0], LaterProduct{index});
  return applied();
}

}  // namespace

// Tried at the linear node, then at the multiplication.
Result<Outcome> lower_multiply_epilogue(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (node.kind() == OpKind::kLinear) return leave_product(l, index);
  const Value gate = node.inputs[0];
  const auto* later = l.form_as<LaterProduct>(gate);
  if (!later) return not_matched();
  const uint64_t n = l.graph().info(gate).columns;
  DP_TRY(const Columns columns, l.columns_of(*gated_by(node, gate)));
  const TensorView x = columns.buffer.sub(columns.column * sizeof(float), n * sizeof(float));
  DP_TRY(const Rows y, l.rows_for(node.outputs[0], "multiplied", /*may_skip_f32=*/true));
  DP_CHECK(record_products(l, later->linear, [&](const Projection::Part&) {
    return kernels::GateOf{.x = x, .y = y, .activation = activation_of(node)};
  }));
  l.set_form(node.outputs[0], y);
  return applied();
}

}  // namespace doppler::lowering
