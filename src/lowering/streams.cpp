// The plain rules of operations that need only values, and of AltUp's streams: a kernel for each.
#include "kernels/altup/altup.h"
#include "kernels/pointwise/pointwise.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

kernels::PartOfRows part_of(const Columns& columns) {
  return {.buffer = columns.buffer, .stride = columns.stride, .column = columns.column};
}

// The buffer of values that one operation made one after another.
Result<TensorView> whole_streams(const Lowering& l, const Node& node) {
  TensorView whole;
  for (uint32_t j = 0; j < kAltupStreams; ++j) {
    DP_TRY(const TensorView stream, l.f32_of(node.inputs[j]));
    if (j == 0) whole = stream.sub(0, kAltupStreams * stream.bytes);
    if (stream != whole.sub(j * stream.bytes, stream.bytes)) {
      return fail(ErrorKind::kUnsupported, "The streams of %s do not lie one after another.",
                  node.op_label.c_str());
    }
  }
  return whole;
}

// Room for the node's streams, whose form is set too.
Result<TensorView> make_streams(Lowering& l, const kernels::Context& ctx, uint32_t index) {
  const Node& node = l.node(index);
  const uint64_t floats = uint64_t{ctx.max_rows} * l.graph().info(node.outputs[0]).columns;
  const uint64_t bytes = floats * sizeof(float), step = ctx.plan.caps().binding_alignment;
  if (bytes % step != 0) {
    return fail(ErrorKind::kUnsupported,
                "A stream of %u rows has %llu bytes; allowed are multiples of the device's %llu.",
                ctx.max_rows, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(step));
  }
  const TensorView whole = l.scratch(node.op_label, kAltupStreams * floats);
  for (uint32_t j = 0; j < kAltupStreams; ++j)
    l.set_form(node.outputs[j], Rows{.f32 = whole.sub(j * bytes, bytes)});
  return whole;
}

}  // namespace

Result<Outcome> lower_multiply(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  kernels::Multiply op{.n = n, .activation = std::get<graph::Multiply>(node.operation).activation};
  DP_TRY(const Columns x, l.columns_of(node.inputs[0]));
  op.x = part_of(x);
  if (node.vectors.empty()) {
    DP_TRY(const Columns u, l.columns_of(node.inputs[1]));
    op.u = part_of(u);
  } else {
    op.u = {.buffer = l.weights().vectors[node.vectors[0].index]};
    op.is_one = l.graph().info(node.vectors[0]).shape[0] == 1 && n != 1;
  }
  op.y = l.scratch(node.op_label, uint64_t{l.rows(node.outputs[0])} * n);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], Rows{.f32 = op.y});
  return applied();
}

Result<Outcome> lower_slice(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  DP_TRY(Columns columns, l.columns_of(node.inputs[0]));
  columns.column += std::get<graph::Slice>(node.operation).first;
  l.set_form(node.outputs[0], columns);
  return applied();
}

Result<Outcome> lower_sparsify(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (!l.is_read_out(node.inputs[0], index)) {
    return fail(ErrorKind::kUnsupported, "The value that %s changes is read again after it.",
                node.op_label.c_str());
  }
  DP_TRY(const Columns x, l.columns_of(node.inputs[0]));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(
      ctx, kernels::Sparsify{.x = part_of(x),
                             .n = l.graph().info(node.outputs[0]).columns,
                             .deviations = std::get<graph::Sparsify>(node.operation).deviations}));
  l.set_form(node.outputs[0], x);
  return applied();
}

Result<Outcome> lower_altup_match(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  kernels::AltupMatch op{.x = {},
                         .y = {},
                         .n = l.graph().info(node.outputs[0]).columns,
                         .is_mean = std::get<graph::AltupMatch>(node.operation).is_mean};
  for (uint32_t j = 0; j < kAltupStreams; ++j) {
    DP_TRY(op.x[j], l.f32_of(node.inputs[j]));
  }
  kernels::Context ctx = l.context(index);
  if (op.is_mean) {
    op.y = l.scratch("x", uint64_t{ctx.max_rows} * op.n);
    l.set_form(node.outputs[0], Rows{.f32 = op.y});
  } else {
    DP_TRY(op.y, make_streams(l, ctx, index));
  }
  DP_CHECK(kernels::record(ctx, op));
  return applied();
}

Result<Outcome> lower_altup_predict(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  kernels::AltupPredict op{.n = l.graph().info(node.outputs[0]).columns,
                           .router_scale = std::get<graph::AltupPredict>(node.operation).router_scale};
  op.weight = l.weights().node_vectors[index];
  DP_TRY(op.x, whole_streams(l, node));
  DP_TRY(op.router, l.f32_of(node.inputs[kAltupStreams]));
  if (node.inputs.size() > kAltupStreams + 1) {
    DP_TRY(op.added, l.f32_of(node.inputs[kAltupStreams + 1]));
  }
  kernels::Context ctx = l.context(index);
  DP_TRY(op.y, make_streams(l, ctx, index));
  DP_CHECK(kernels::record(ctx, op));
  return applied();
}

Result<Outcome> lower_altup_correct(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  kernels::AltupCorrect op{.n = l.graph().info(node.outputs[0]).columns,
                           .router_scale = std::get<graph::AltupCorrect>(node.operation).router_scale};
  op.weight = l.weights().node_vectors[index];
  DP_TRY(op.x, whole_streams(l, node));
  DP_TRY(op.router, l.f32_of(node.inputs[kAltupStreams]));
  DP_TRY(op.made, l.f32_of(node.inputs[kAltupStreams + 1]));
  kernels::Context ctx = l.context(index);
  DP_TRY(op.y, make_streams(l, ctx, index));
  DP_CHECK(kernels::record(ctx, op));
  return applied();
}

}  // namespace doppler::lowering
