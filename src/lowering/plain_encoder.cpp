// The plain rules of operations that encoders have: a kernel for each.
#include "kernels/embed/positions.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/pointwise/pointwise.h"
#include "lowering/lowering.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
Result<Outcome> lower_layer_norm(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  kernels::LayerNorm op{.weights = l.weights().node_vectors[index],
                        .n = l.graph().info(node.outputs[0]).columns,
                        .has_bias = node.vectors.size() > 1,
                        .eps = std::get<graph::LayerNorm>(node.operation).eps};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.y, l.rows_for(node.outputs[0], "normed"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], op.y);
  return applied();
}

Result<Outcome> lower_positions(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const graph::Graph& g = l.graph();
  DP_TRY(const TensorView x, l.in_place(index));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::Positions{.x = x,
                                                   .positions = l.weights().vectors[node.vectors[0].index],
                                                   .types = l.weights().vectors[node.vectors[1].index],
                                                   .type_ids = l.io().token_types,
                                                   .n = g.info(node.outputs[0]).columns,
                                                   .n_positions = g.info(node.vectors[0]).shape[0],
                                                   .n_types = g.info(node.vectors[1]).shape[0]}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

Result<Outcome> lower_activate(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  DP_TRY(const TensorView x, l.in_place(index));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(
      ctx, kernels::Activate{.x = x,
                             .n = l.graph().info(node.outputs[0]).columns,
                             .activation = std::get<graph::Activate>(node.operation).activation}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

}  // namespace doppler::lowering
