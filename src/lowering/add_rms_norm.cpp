// add_rms_norm: a sum in one dispatch with what stands around it: the norm of the summand, the scale of the sum, its norm, and
// the forms in which products read it.
#include "kernels/rms_norm/rms_norm.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// The multiplication of a sum by one number of the model's, where nothing else reads the sum.
std::optional<uint32_t> scale_of(const Lowering& l, Value sum) {
  const std::optional<uint32_t> multiply = l.only_reader(sum, OpKind::kMultiply);
  if (!multiply || l.node(*multiply).vectors.empty()) return std::nullopt;
  if (l.graph().info(l.node(*multiply).vectors[0]).shape[0] != 1) return std::nullopt;
  return multiply;
}

// Why the norm of a sum needs a dispatch of its own; "" if it does not.
std::string refuse_norm(const Lowering& l, uint32_t norm, Value sum, std::optional<float> branch_eps,
                        bool has_scale) {
  if (branch_eps && std::get<graph::RmsNorm>(l.node(norm).operation).eps != *branch_eps) {
    return "the two norms differ in epsilon";
  }
  if (l.selected_rows(norm) == kernels::SelectedRows::kAll) return "";
  if (has_scale) return "the norm is of selected rows of a scaled sum";
  return l.readers(sum).size() > 1 ? "others read more than the selected rows of the sum" : "";
}

}  // namespace

Result<Outcome> lower_add_rms_norm(Lowering& l, uint32_t index) {
  // The summand: the input of a norm that only the sum reads, or the add's own second input.
  const bool has_branch_norm = l.node(index).kind() == OpKind::kRmsNorm;
  std::optional<uint32_t> add = index;
  if (has_branch_norm) add = l.only_reader(l.node(index).outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  Value sum = l.node(*add).outputs[0];
  const std::optional<uint32_t> scale = scale_of(l, sum);
  if (scale) sum = l.node(*scale).outputs[0];
  std::optional<uint32_t> norm = norm_of(l, sum);
  std::optional<float> branch_eps;
  if (has_branch_norm) branch_eps = std::get<graph::RmsNorm>(l.node(index).operation).eps;
  if (norm) {
    std::string apart = refuse_norm(l, *norm, sum, branch_eps, scale.has_value());
    if (!apart.empty() && !has_branch_norm && !scale) return refused(std::move(apart));
    if (!apart.empty()) {
      l.note_refused("add_rms_norm", *norm, apart);
      norm.reset();
    }
  }
  if (!norm && !has_branch_norm && !scale) return not_matched();

  const Value branch = has_branch_norm ? l.node(index).inputs[0] : l.node(*add).inputs[1];
  const Value x = other_input(l, *add, has_branch_norm ? l.node(index).outputs[0] : branch);
  std::string reason = refuse_in_place(l, *add, x);
  if (!reason.empty()) return refused(std::move(reason));

  kernels::RmsNorm op{.x = l.form_as<Rows>(x)->f32, .n = l.graph().info(sum).columns};
  DP_TRY(op.add, l.f32_of(branch));
  if (has_branch_norm) {
    op.add_weight = l.weights().vectors[l.node(index).vectors[0].index];
    op.eps = *branch_eps;
  }
  if (scale) op.sum_scale = l.weights().vectors[l.node(*scale).vectors[0].index];
  Rows sum_forms{.f32 = op.x};
  if (norm) {
    op.weight = l.weights().vectors[l.node(*norm).vectors[0].index];
    op.eps = std::get<graph::RmsNorm>(l.node(*norm).operation).eps;
    op.rows = l.selected_rows(*norm);
    DP_TRY(op.y, l.rows_for(l.node(*norm).outputs[0], "normed"));
    l.set_form(l.node(*norm).outputs[0], op.y);
    l.cover(*norm);
  } else {
    DP_CHECK(l.add_product_forms(sum, "sum", op.y));
    sum_forms.q8 = op.y.q8;
    sum_forms.f16 = op.y.f16;
  }
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(sum, sum_forms);
  l.cover(*add);
  if (scale) l.cover(*scale);
  return applied();
}

}  // namespace doppler::lowering
