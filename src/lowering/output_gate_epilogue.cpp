// output_gate_epilogue: the gate of an attention's output is a product of the same norm as q, k and v. It is made behind
// attention, and multiplies what attention left, instead of before it with a dispatch behind both.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

Result<Outcome> leave_product(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const std::optional<uint32_t> gate = l.only_reader(linear.outputs[0], OpKind::kOutputGate);
  if (!gate || l.node(*gate).inputs[1] != linear.outputs[0]) return not_matched();
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (projection.parts.size() != 1 || projection.has_bias()) {
    return refused("the gate has a bias or several weights");
  }
  DP_TRY(const Wanted wanted, l.wanted(l.node(*gate).outputs[0]));
  if (wanted.f16) return refused("its output is read as f16 tiles");
  std::string reason = kernels::refuse_epilogue(l.context(index), projection.parts[0].weight,
                                                resolved->choices[0], kernels::EpilogueKind::kGateOf);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(const kernels::Prologue x, l.prologue(linear.inputs[0]));
  if (!std::holds_alternative<Rows>(x) && !std::holds_alternative<DeferredNorm>(x)) {
    return refused("the product that is the gate makes its own input");
  }
  l.set_form(linear.outputs[0], LaterProduct{index});
  return applied();
}

}  // namespace

// At the linear node, then at the gate.
Result<Outcome> lower_output_gate_epilogue(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (node.kind() == OpKind::kLinear) return leave_product(l, index);
  const auto* later = l.form_as<LaterProduct>(node.inputs[1]);
  if (!later) return not_matched();
  DP_TRY(const TensorView x, l.f32_of(node.inputs[0]));
  DP_TRY(const Rows y, l.rows_for(node.outputs[0], "output_gate", /*may_skip_f32=*/true));
  DP_CHECK(record_products(l, later->linear,
                           [&](const Projection::Part&) { return kernels::GateOf{.x = x, .y = y}; }));
  l.set_form(node.outputs[0], y);
  return applied();
}

}  // namespace doppler::lowering
