// expert_sum_norm: what the experts add up to, the residual and its norm in one dispatch.
#include "kernels/moe/expert_norm.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_expert_sum_norm(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const std::optional<uint32_t> add = l.only_reader(node.outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  const Value sum = l.node(*add).outputs[0];
  const std::optional<uint32_t> norm = norm_of(l, sum);
  if (!norm) return not_matched();
  const Value x = other_input(l, *add, node.outputs[0]), normed = l.node(*norm).outputs[0];
  const uint32_t columns = l.graph().info(sum).columns;
  if (columns % 4 != 0) return refused(format_text("rows of %u are not whole vec4s", columns));
  // A single row is both the last and the first.
  const bool has_one_row = l.rows(sum) == 1;
  const kernels::SelectedRows rows = l.selected_rows(*norm);
  if (rows != kernels::SelectedRows::kAll && !(has_one_row && rows == kernels::SelectedRows::kLast)) {
    return refused("the norm is of selected rows");
  }
  DP_TRY(const Wanted wanted, l.wanted(normed));
  if (wanted.f16) return refused("the norm is read as f16 tiles");
  std::string reason = refuse_in_place(l, *add, x);
  if (!reason.empty()) return refused(std::move(reason));

  const auto* routed = l.form_as<Routed>(node.inputs[1]);
  if (!routed) return not_matched();
  kernels::ExpertNorm op{.routes = routed->routes,
                         .residual = l.form_as<Rows>(x)->f32,
                         .weight = l.weights().vectors[l.node(*norm).vectors[0].index],
                         .n = columns,
                         .eps = std::get<graph::RmsNorm>(l.node(*norm).operation).eps};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  if (node.inputs.size() > 2) {
    DP_TRY(op.shared, l.f32_of(node.inputs[2]));
  }
  if (node.inputs.size() > 3) {
    DP_TRY(op.shared_gate, l.f32_of(node.inputs[3]));
  }
  DP_TRY(op.y, l.rows_for(normed, "normed", /*may_skip_f32=*/true));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(sum, Rows{.f32 = op.residual});
  l.set_form(normed, op.y);
  l.cover(*add);
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
