// deferred_rms_norm: the norm of a sum has its division left to the products that read it, since the sum of squares is
// only known once all workgroups have made their part of the row.
#include <algorithm>

#include "lowering/adapter_products.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_deferred_rms_norm(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const std::optional<uint32_t> add = l.only_reader(linear.outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  const Value sum = l.node(*add).outputs[0];
  const std::optional<uint32_t> norm = norm_of(l, sum);
  if (!norm) return not_matched();
  const Value normed = l.node(*norm).outputs[0];
  const std::vector<uint32_t> readers = l.readers(normed);
  const bool all_products =
      std::ranges::all_of(readers, [&](uint32_t reader) { return l.node(reader).kind() == OpKind::kLinear; });
  if (readers.empty() || !all_products) return refused("the norm is not read only by products");
  std::string reason = refuse_adapter_in_sum(l, index);
  if (!reason.empty()) return refused(std::move(reason));

  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (projection.parts.size() != 1) return refused("the product is more than one dispatch");
  reason = kernels::refuse_epilogue(l.context(index), projection.parts[0].weight, resolved->choices[0],
                                    kernels::EpilogueKind::kDeferredNorm);
  if (!reason.empty()) return refused(std::move(reason));
  DP_TRY(const ResolvedLinear* reads, l.resolve(readers[0]));
  const kernels::InputForm form = reads->choices[0].reads();
  for (const uint32_t reader : readers) {
    DP_TRY(reason, l.refuse_prologue(reader, kernels::PrologueKind::kDeferredNorm));
    if (!reason.empty()) return refused(std::move(reason));
    DP_TRY(reads, l.resolve(reader));
    if (reads->choices[0].reads() != form) return refused("the products that read it read different forms");
  }
  const Value x = other_input(l, *add, linear.outputs[0]);
  reason = refuse_in_place(l, *add, x);
  if (!reason.empty()) return refused(std::move(reason));

  const bool q8 = form == kernels::InputForm::kQ8;
  kernels::Context ctx = l.context(index);
  const DeferredNorm deferred{
      .buffer = ctx.plan.scratch("deferred_norm", DeferredNorm::bytes(projection.n, q8)),
      .weight = l.weights().vectors[l.node(*norm).vectors[0].index],
      .k = projection.n,
      .eps = std::get<graph::RmsNorm>(l.node(*norm).operation).eps,
      .q8 = q8};
  const TensorView y = l.form_as<Rows>(x)->f32;
  DP_CHECK(record_in_sum(l, index, y, projection.n));
  DP_CHECK(record_products(l, index, [&](const Projection::Part&) {
    return kernels::AddResidualDeferNorm{.y = y, .norm = deferred};
  }));
  l.set_form(sum, Rows{.f32 = y});
  l.set_form(normed, deferred);
  l.cover(*add);
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
