// step_tail: the step before (kernels/step/next.h) has made a decode step's first row and norm.
#include <algorithm>

#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

bool Lowering::has_step_input(const graph::Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.kind() != OpKind::kEmbed) continue;
    const std::vector<uint32_t> readers = graph.readers(node.outputs[0]);
    return std::ranges::count(readers, OpKind::kRmsNorm,
                              [&](uint32_t reader) { return graph.nodes()[reader].kind(); }) == 1;
  }
  return false;
}

Result<kernels::EmbedNorm> Lowering::step_input() {
  for (uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    if (node(i).kind() != OpKind::kEmbed) continue;
    const std::optional<uint32_t> norm = norm_of(*this, node(i).outputs[0]);
    if (!norm) break;
    bool q8 = false;
    for (const uint32_t reader : readers_[node(*norm).outputs[0].index]) {
      if (node(reader).kind() != OpKind::kLinear) continue;
      DP_TRY(const ResolvedLinear* resolved, resolve(reader));
      for (const kernels::ProductChoice& choice : resolved->choices)
        q8 = q8 || choice.reads() == kernels::InputForm::kQ8;
    }
    return kernels::EmbedNorm{.table = weights_.tables[i],
                              .scale = std::get<graph::Embed>(node(i).operation).scale,
                              .norm_weight = weights_.vectors[node(*norm).vectors[0].index],
                              .eps = std::get<graph::RmsNorm>(node(*norm).operation).eps,
                              .x = io_.row,
                              .h = {.buffer = io_.normed_row,
                                    .k = graph_.info(node(i).outputs[0]).columns,
                                    .q8 = q8 && is_on("producer_forms")},
                              .token = {}};
  }
  return fail(ErrorKind::kUnsupported, "The model does not begin with an embedding and its norm.");
}

Result<Outcome> lower_step_tail(Lowering& l, uint32_t index) {
  const bool is_residual = l.graph().info(l.node(index).matrices[0]).tensor == TensorId::kEmbedding;
  if (!l.io().begins_with_row || !is_residual || l.is_next(index)) return not_matched();
  DP_TRY(const kernels::EmbedNorm input, l.step_input());
  const Value x = l.node(index).outputs[0];
  const std::optional<uint32_t> norm = norm_of(l, x);
  l.set_form(x, Rows{.f32 = l.io().row});
  l.set_form(l.node(*norm).outputs[0], input.h.rows());
  l.cover(*norm);
  return applied();
}

}  // namespace doppler::lowering
