// gated_epilogue: a product of gates and ups that multiplies them itself.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_gated_epilogue(Lowering& l, uint32_t index) {
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  if (!resolved->gated_by) return refused(resolved->gate_refusal);  // empty: there is no gate
  const Node& gated = l.node(*resolved->gated_by);
  // A product of one row in tiles, which finishes norms too, writes only 8 bits.
  const bool is_tiled = kernels::refuse_prologue(l.context(index), resolved->projection->parts[0].weight,
                                                 resolved->choices[0], kernels::PrologueKind::kDeferredNorm)
                            .empty();
  DP_TRY(const Rows y, l.rows_for(gated.outputs[0], "gated", is_tiled));
  const ActivationFn activation = std::get<graph::Gated>(gated.operation).activation;
  DP_CHECK(record_products(
      l, index, [&](const Projection::Part&) { return kernels::Gate{.activation = activation, .y = y}; }));
  l.set_form(gated.outputs[0], y);
  l.cover(*resolved->gated_by);
  return applied();
}

}  // namespace doppler::lowering
