// add_rms_norm: a sum in one dispatch with its surroundings: the norm of the summand, the scale of the sum, its norm,
// and the forms in which products read it.
#include "kernels/rms_norm/rms_norm.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"
#include "lowering/sum_around.h"

namespace doppler::lowering {
namespace {

// The multiplication of a sum by one number of the model's, if only it reads the sum.
std::optional<uint32_t> scale_of(const Lowering& l, Value sum) {
  const std::optional<uint32_t> multiply = l.only_reader(sum, OpKind::kMultiply);
  if (!multiply || l.node(*multiply).vectors.empty()) return std::nullopt;
  if (l.graph().info(l.node(*multiply).vectors[0]).shape[0] != 1) return std::nullopt;
  return multiply;
}

// Why the norm of a sum needs a dispatch of its own; "" if it does not.
std::string refuse_norm(const Lowering& l, uint32_t norm, const SumAround& around) {
  if (around.branch_norm && std::get<graph::RmsNorm>(l.node(norm).operation).eps != around.branch_eps(l)) {
    return "the two norms differ in epsilon";
  }
  if (l.selected_rows(norm) == kernels::SelectedRows::kAll) return "";
  if (around.scale) return "the norm is of selected rows of a scaled sum";
  return l.readers(around.sum).size() > 1 ? "others read more than the selected rows of the sum" : "";
}

}  // namespace

std::optional<SumAround> find_sum_around(const Lowering& l, uint32_t index) {
  // The summand: the input of a norm that only the sum reads, or the add's own second input.
  const bool is_norm = l.node(index).kind() == OpKind::kRmsNorm;
  std::optional<uint32_t> add = index;
  if (is_norm) add = l.only_reader(l.node(index).outputs[0], OpKind::kAdd);
  if (!add) return std::nullopt;
  SumAround found{.add = *add, .branch = {}, .x = {}, .sum = l.node(*add).outputs[0]};
  if (is_norm) found.branch_norm = index;
  found.scale = scale_of(l, found.sum);
  if (found.scale) found.sum = l.node(*found.scale).outputs[0];
  found.norm = norm_of(l, found.sum);
  const bool has_more = is_norm || found.scale;
  if (!found.norm && !has_more) return std::nullopt;
  if (found.norm) found.norm_apart = refuse_norm(l, *found.norm, found);
  if (!found.norm_apart.empty() && !has_more) found.refusal = found.norm_apart;
  found.branch = is_norm ? l.node(index).inputs[0] : l.node(*add).inputs[1];
  found.x = other_input(l, *add, is_norm ? l.node(index).outputs[0] : found.branch);
  if (found.refusal.empty()) found.refusal = refuse_in_place(l, *add, found.x);
  return found;
}

Result<Outcome> lower_add_rms_norm(Lowering& l, uint32_t index) {
  std::optional<SumAround> found = find_sum_around(l, index);
  if (!found) return not_matched();
  if (!found->refusal.empty()) return refused(std::move(found->refusal));
  if (!found->norm_apart.empty()) {
    l.note_refused("add_rms_norm", *found->norm, found->norm_apart);
    found->norm.reset();
  }

  kernels::AddBranch op{
      .x = l.form_as<Rows>(found->x)->f32, .branch = {}, .then = {}, .n = l.graph().info(found->sum).columns};
  if (const auto* sums = l.form_as<SplitSums>(found->branch)) {
    op.branch.values = *sums;
  } else {
    DP_TRY(op.branch.values, l.f32_of(found->branch));
  }
  if (found->branch_norm) {
    op.branch.norm_weight = l.weights().vectors[l.node(*found->branch_norm).vectors[0].index];
    op.eps = found->branch_eps(l);
  }
  if (found->scale) op.scale = l.weights().vectors[l.node(*found->scale).vectors[0].index];
  Rows sum_forms{.f32 = op.x};
  if (found->norm) {
    const Node& norm = l.node(*found->norm);
    kernels::NormOfSum then{
        .weight = l.weights().vectors[norm.vectors[0].index], .y = {}, .rows = l.selected_rows(*found->norm)};
    op.eps = std::get<graph::RmsNorm>(norm.operation).eps;
    DP_TRY(then.y, l.rows_for(norm.outputs[0], "normed"));
    l.set_form(norm.outputs[0], then.y);
    l.cover(*found->norm);
    op.then = then;
  } else {
    Rows forms;
    DP_CHECK(l.add_product_forms(found->sum, "sum", forms));
    op.then = kernels::SumForms{.q8 = forms.q8, .f16 = forms.f16};
    sum_forms.q8 = forms.q8;
    sum_forms.f16 = forms.f16;
  }
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(found->sum, sum_forms);
  l.cover(found->add);
  if (found->scale) l.cover(*found->scale);
  return applied();
}

}  // namespace doppler::lowering
