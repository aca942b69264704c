// gated_experts: the gates and ups of a row's experts in one product that multiplies them itself.
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_gated_experts(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (node.outputs.size() != 2) return not_matched();
  const std::optional<uint32_t> reader = l.only_reader(node.outputs[0], OpKind::kGated);
  if (!reader || l.only_reader(node.outputs[1], OpKind::kGated) != reader) return not_matched();
  // Its part of the plan would have to be the plain rule's, which is replayed for each set of experts in the slots.
  if (is_paged(l, node.inputs[1])) return refused("the experts are paged");
  const auto& gated = std::get<graph::Gated>(l.node(*reader).operation);
  if (gated.limit != 0) return refused("the gate has a limit");
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (projection.parts.size() != 1) return refused("gate and up are not one weight");
  const Value y = l.node(*reader).outputs[0];
  DP_TRY(const Wanted wanted, l.wanted(y));
  if (wanted.f16) return refused("the product of gate and up is read as f16 tiles");
  std::string reason = kernels::refuse_expert_gate(resolved->choices[0], gated.activation);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(const kernels::Prologue prologue, l.prologue(node.inputs[0]));
  const auto* x = std::get_if<Rows>(&prologue);
  const auto* routed = l.form_as<Routed>(node.inputs[1]);
  if (!x || !routed) return not_matched();

  const Projection::Part& part = projection.parts[0];
  DP_TRY(const Rows rows, l.rows_for(y, "gated", /*may_skip_f32=*/true));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(
      ctx, resolved->choices[0],
      kernels::ExpertLinear{.weight = part.weight,
                            .n = part.weight.n / (part.matrices * routed->routes.n_experts),
                            .matrices = part.matrices,
                            .x = *x,
                            .x_per_slot = l.graph().info(node.inputs[0]).columns != projection.k,
                            .routes = routed->routes,
                            .bias = part.bias,
                            .gate = kernels::Gate{.activation = gated.activation, .y = rows}}));
  l.set_form(y, rows);
  l.cover(*reader);
  return applied();
}

}  // namespace doppler::lowering
