// The plain rules of operations that models have that see: a kernel for each.
#include "kernels/image_rows/image_rows.h"
#include "lowering/lowering.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_input(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const uint32_t number = std::get<graph::Input>(node.operation).index;
  if (number >= l.io().inputs.size() || !l.io().inputs[number].valid()) {
    return fail(ErrorKind::kInternal, "The plan brings no rows for %s.", node.op_label.c_str());
  }
  l.set_form(node.outputs[0], Rows{.f32 = l.io().inputs[number]});
  return applied();
}

Result<Outcome> lower_table_rows(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const graph::WeightInfo& table = l.graph().info(node.vectors[0]);
  DP_TRY(const TensorView x, l.in_place(index));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::TableRows{.x = x,
                                                   .table = l.weights().vectors[node.vectors[0].index],
                                                   .taps = l.io().taps.taps,
                                                   .n = table.shape[1],
                                                   .n_entries = table.shape[0],
                                                   .taps_each = l.io().taps.taps_each}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

Result<Outcome> lower_image_rows(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& op = std::get<graph::ImageRows>(node.operation);
  const ImageIo& io = l.io().images;
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  DP_TRY(const TensorView x, l.in_place(index));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::ImageRows{.x = x,
                                                   .images = io.images,
                                                   .places = io.places,
                                                   .n = n,
                                                   .n_images = io.n_images,
                                                   .stride = io.stride,
                                                   .column = op.index * n,
                                                   .adds = op.adds}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

Result<Outcome> lower_mean_parts(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  kernels::MeanParts op{.n = n, .parts = l.graph().info(node.inputs[0]).columns / n};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  op.y = l.scratch(node.op_label, uint64_t{l.rows(node.outputs[0])} * n);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], Rows{.f32 = op.y});
  return applied();
}

Result<Outcome> lower_clamp(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  kernels::Clamp op{.limits = l.weights().vectors[node.vectors[0].index],
                    .n = l.graph().info(node.outputs[0]).columns,
                    .first = std::get<graph::Clamp>(node.operation).first};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  op.y = l.scratch(node.op_label, uint64_t{l.rows(node.outputs[0])} * op.n);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], Rows{.f32 = op.y});
  return applied();
}

Result<Outcome> lower_standardise(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  DP_TRY(const TensorView x, l.in_place(index));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::Standardise{.x = x,
                                                     .mean = l.weights().vectors[node.vectors[0].index],
                                                     .scale = l.weights().vectors[node.vectors[1].index],
                                                     .n = l.graph().info(node.outputs[0]).columns}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

}  // namespace doppler::lowering
