// add_rms_norm: a sum and its norm in one dispatch, and where norms stand behind the branches the summand's norm too.
#include "kernels/rms_norm/rms_norm.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_add_rms_norm(Lowering& l, uint32_t index) {
  // The summand: the input of a norm that only the sum reads, or the add's own second input.
  const bool has_branch_norm = l.node(index).kind() == OpKind::kRmsNorm;
  std::optional<uint32_t> add = index;
  if (has_branch_norm) add = l.only_reader(l.node(index).outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  const Value sum = l.node(*add).outputs[0];
  const std::optional<uint32_t> norm = norm_of(l, sum);
  if (!norm) return not_matched();
  const Value branch = has_branch_norm ? l.node(index).inputs[0] : l.node(*add).inputs[1];
  const Value x = other_input(l, *add, has_branch_norm ? l.node(index).outputs[0] : branch);
  const float eps = std::get<graph::RmsNorm>(l.node(*norm).operation).eps;
  if (has_branch_norm && std::get<graph::RmsNorm>(l.node(index).operation).eps != eps) {
    return refused("the two norms differ in epsilon");
  }
  const kernels::SelectedRows rows = l.selected_rows(*norm);
  if (rows != kernels::SelectedRows::kAll && l.readers(sum).size() > 1) {
    return refused("others read more than the selected rows of the sum");
  }
  std::string reason = refuse_in_place(l, *add, x);
  if (!reason.empty()) return refused(std::move(reason));

  kernels::RmsNorm op{.x = l.form_as<Rows>(x)->f32,
                      .weight = l.weights().vectors[l.node(*norm).vectors[0].index],
                      .n = l.graph().info(sum).columns,
                      .eps = eps,
                      .rows = rows};
  DP_TRY(op.add, l.f32_of(branch));
  if (has_branch_norm) op.add_weight = l.weights().vectors[l.node(index).vectors[0].index];
  const Value normed = l.node(*norm).outputs[0];
  DP_TRY(op.y, l.rows_for(normed, "normed"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(sum, Rows{.f32 = op.x});
  l.set_form(normed, op.y);
  l.cover(*add);
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
