// paired_products: q and k in one number format beside v in another, as quantised files have them, in one dispatch.
#include "lowering/adapter_products.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_paired_products(Lowering& l, uint32_t index) {
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& projection = *resolved->projection;
  if (projection.parts.size() != 2) return not_matched();
  const kernels::Weight &first = projection.parts[0].weight, &second = projection.parts[1].weight;
  DP_TRY(const kernels::Prologue x, l.prologue(l.node(index).inputs[0]));
  kernels::Context ctx = l.context(index);
  const kernels::PairNeeds needs{.prologue = static_cast<kernels::PrologueKind>(x.index()),
                                 .has_bias = projection.has_bias()};
  std::string reason =
      kernels::refuse_pair(ctx, first, resolved->choices[0], second, resolved->choices[1], needs);
  if (!reason.empty()) return refused(std::move(reason));
  const TensorView y = l.product_buffer(index);
  DP_TRY(std::optional<kernels::LowRankUp> up, record_low(l, index));
  DP_CHECK(kernels::record(
      ctx, resolved->choices[0], resolved->choices[1],
      kernels::LinearPair{.first = first, .second = second, .x = x, .bias = projection.pair_bias, .y = y}));
  DP_CHECK(record_up(l, index, std::move(up), y, projection.n));
  l.set_product(index, y);
  return applied();
}

}  // namespace doppler::lowering
