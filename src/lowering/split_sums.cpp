// split_sums: a product that splits its columns over workgroups leaves the sums of each split to the norm after the
// residual's sum, which adds them up, instead of a dispatch of its own that does.
#include "lowering/adapter_products.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"
#include "lowering/sum_around.h"

namespace doppler::lowering {

Result<Outcome> lower_split_sums(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const Value y = linear.outputs[0];
  std::optional<uint32_t> reader = l.only_reader(y, OpKind::kAdd);
  if (!reader) reader = l.only_reader(y, OpKind::kRmsNorm);
  if (!reader) return not_matched();
  const std::optional<SumAround> around = find_sum_around(l, *reader);
  if (!around || around->branch != y) return not_matched();
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (projection.parts.size() != 1) return not_matched();
  kernels::Context ctx = l.context(index);
  std::optional<SplitSums> sums = kernels::left_sums(ctx, projection.parts[0].weight, resolved->choices[0]);
  if (!sums) return not_matched();
  if (projection.has_bias()) return refused("the product has a bias");
  if (!l.is_on("add_rms_norm")) return refused("add_rms_norm is off");
  if (!around->refusal.empty()) return refused(around->refusal);
  if (l.adapter(index)) {
    std::string reason =
        around->branch_norm ? "its adapters add to what is normalised" : refuse_adapter_in_sum(l, index);
    if (!reason.empty()) return refused(std::move(reason));
    DP_TRY(const TensorView x, l.f32_of(around->x));
    DP_CHECK(record_in_sum(l, index, x, projection.n));
  }
  sums->partials = ctx.plan.scratch("split sums", sums->bytes());
  DP_CHECK(
      record_products(l, index, [&](const Projection::Part&) { return kernels::LeaveSums{.sums = *sums}; }));
  l.set_form(y, *sums);
  return applied();
}

}  // namespace doppler::lowering
