// tile_argmax: greedy plans need only the best logit, so the head leaves the best of each of its tiles.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_tile_argmax(Lowering& l, uint32_t index) {
  if (!l.io().greedy || l.io().logits_rows != LogitsRows::kLast) return not_matched();
  // A positive factor and a soft cap keep the order of the logits.
  std::optional<uint32_t> scale;
  Value logits = l.node(index).outputs[0];
  if (logits != l.graph().logits()) {
    scale = l.only_reader(logits, OpKind::kScale);
    if (!scale || std::get<graph::Scale>(l.node(*scale).operation).factor <= 0) return not_matched();
    logits = l.node(*scale).outputs[0];
  }
  if (logits != l.graph().logits()) return not_matched();
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const Projection& head = *resolved->projection;
  if (l.adapter(index)) return refused("its adapters add to the logits");
  if (head.parts.size() != 1 || head.has_bias()) return refused("the head has a bias or several weights");
  kernels::Context ctx = l.context(index);
  std::string reason = kernels::refuse_epilogue(ctx, head.parts[0].weight, resolved->choices[0],
                                                kernels::EpilogueKind::kTileArgmax);
  if (!reason.empty()) return refused(std::move(reason));
  const uint32_t count = kernels::best_count(head.parts[0].weight);
  const TensorView best = ctx.plan.scratch("best", count * kernels::kBestBytes);
  DP_CHECK(
      record_products(l, index, [&](const Projection::Part&) { return kernels::TileArgmax{.best = best}; }));
  if (scale) l.cover(*scale);
  l.set_logits({.all = {}, .best = best, .best_count = count});
  return applied();
}

}  // namespace doppler::lowering
