// add_rms_norm_prologue: if norms stand after the branches (Gemma), the product that reads the next norm makes the sum,
// both norms and its own input, so that no dispatch does it in between.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// A gated reader that makes its input writes only 8 bits.
Result<std::string> refuse_gated_reader(Lowering& l, uint32_t reader) {
  DP_TRY(const ResolvedLinear* resolved, l.resolve(reader));
  if (!resolved->gated_by) return std::string();
  DP_TRY(const Wanted wanted, l.wanted(l.node(*resolved->gated_by).outputs[0]));
  const bool only_q8 = wanted.q8 && !wanted.f32 && !wanted.f16;
  return std::string(only_q8 ? "" : "its gated reader would write more than 8 bits");
}

}  // namespace

Result<Outcome> lower_add_rms_norm_prologue(Lowering& l, uint32_t index) {
  const Node& branch_norm = l.node(index);
  const std::optional<uint32_t> add = l.only_reader(branch_norm.outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  const std::optional<uint32_t> norm = norm_of(l, l.node(*add).outputs[0]);
  if (!norm) return not_matched();
  const Value normed = l.node(*norm).outputs[0];
  const std::optional<uint32_t> reader = l.only_reader(normed, OpKind::kLinear);
  if (!reader) return refused("the norm is not read by only one product");
  if (l.selected_rows(*norm) != kernels::SelectedRows::kAll) return refused("the head selects its rows");
  const float eps = std::get<graph::RmsNorm>(branch_norm.operation).eps;
  if (std::get<graph::RmsNorm>(l.node(*norm).operation).eps != eps)
    return refused("the two norms differ in epsilon");
  DP_TRY(std::string reason, l.refuse_prologue(*reader, kernels::PrologueKind::kAddRmsNorm));
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(reason, refuse_gated_reader(l, *reader));
  if (!reason.empty()) return refused(std::move(reason));

  const Value x = other_input(l, *add, branch_norm.outputs[0]);
  AddRmsNorm made{.add_weight = l.weights().vectors[branch_norm.vectors[0].index],
                  .weight = l.weights().vectors[l.node(*norm).vectors[0].index],
                  .x = l.scratch("x", l.graph().info(normed).columns),
                  .eps = eps};
  DP_TRY(made.residual, l.f32_of(x));
  DP_TRY(made.branch, l.f32_of(branch_norm.inputs[0]));
  l.set_form(l.node(*add).outputs[0], Rows{.f32 = made.x});
  l.set_form(normed, made);
  l.cover(*add);
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
