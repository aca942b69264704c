// The plain rules of layers with a recurrent state: a kernel for each operation.
#include "kernels/recurrent/causal_conv.h"
#include "kernels/recurrent/gated_norm.h"
#include "kernels/recurrent/output_gate.h"
#include "kernels/recurrent/scan.h"
#include "lowering/lowering.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// Whether each row of the plan is of another sequence.
bool has_single_rows(const Lowering& l, const kernels::Context& ctx) {
  return ctx.tables.sequences != 0 && l.io().single_rows == ctx.max_rows;
}

Result<Outcome> lower_scan(Lowering& l, uint32_t index, kernels::Scan op, uint32_t layer) {
  const Node& node = l.node(index);
  kernels::Context ctx = l.context(index);
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(const Columns decay, l.columns_of(node.inputs[1]));
  op.gates = decay.buffer;
  op.gates_stride = decay.stride;
  op.gate_column = decay.column;
  if (node.inputs.size() > 2) {
    DP_TRY(const Columns rate, l.columns_of(node.inputs[2]));
    if (rate.buffer != decay.buffer) {
      return fail(ErrorKind::kUnsupported, "The gates of %s do not lie beside one another.",
                  node.op_label.c_str());
    }
    op.rate_column = rate.column;
  }
  op.vectors = l.weights().node_vectors[index];
  op.state = l.io().states[layer].scan;
  op.y = l.scratch("scan", uint64_t{ctx.max_rows} * op.n_heads * op.value_dim);
  op.single_rows = has_single_rows(l, ctx);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], Rows{.f32 = op.y});
  return applied();
}

}  // namespace

Result<Outcome> lower_causal_conv(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& conv = std::get<graph::CausalConv>(node.operation);
  kernels::Context ctx = l.context(index);
  DP_TRY(const Columns x, l.columns_of(node.inputs[0]));
  kernels::CausalConv op{.x = x.buffer,
                         .x_stride = x.stride,
                         .x_column = x.column,
                         .weight = l.weights().node_vectors[index],
                         .state = l.io().states[conv.layer].conv,
                         .n = l.graph().info(node.outputs[0]).columns,
                         .kernel = conv.kernel,
                         .has_bias = node.vectors.size() > 1,
                         .gated = conv.is_gated,
                         .activation = conv.activation,
                         .single_rows = has_single_rows(l, ctx)};
  DP_TRY(op.y, l.rows_for(node.outputs[0], "conv"));
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], op.y);
  return applied();
}

Result<Outcome> lower_gated_delta(Lowering& l, uint32_t index) {
  const auto& d = std::get<graph::GatedDelta>(l.node(index).operation);
  return lower_scan(l, index,
                    {.rule = kernels::ScanRule::kGatedDelta,
                     .n_heads = d.n_heads,
                     .n_key_heads = d.n_key_heads,
                     .is_tiled = d.is_tiled,
                     .key_dim = d.key_dim,
                     .value_dim = d.value_dim},
                    d.layer);
}

Result<Outcome> lower_mamba2(Lowering& l, uint32_t index) {
  const auto& m = std::get<graph::Mamba2>(l.node(index).operation);
  return lower_scan(l, index,
                    {.rule = kernels::ScanRule::kMamba2,
                     .n_heads = m.n_heads,
                     .n_key_heads = m.n_key_heads,
                     .key_dim = m.key_dim,
                     .value_dim = m.value_dim},
                    m.layer);
}

Result<Outcome> lower_gated_norm(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& norm = std::get<graph::GatedNorm>(node.operation);
  DP_TRY(const Columns gate, l.columns_of(node.inputs[1]));
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  kernels::GatedNorm op{.gates = gate.buffer,
                        .gates_stride = gate.stride,
                        .gate_column = gate.column,
                        .weight = l.weights().vectors[node.vectors[0].index],
                        .n = n,
                        .group = norm.group,
                        .shares_weight = l.graph().info(node.vectors[0]).shape[0] != n,
                        .gate_first = norm.gate_first,
                        .eps = norm.eps};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.y, l.rows_for(node.outputs[0], "gated_norm"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], op.y);
  return applied();
}

Result<Outcome> lower_output_gate(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  DP_TRY(const Columns gate, l.columns_of(node.inputs[1]));
  kernels::OutputGate op{.gates = gate.buffer,
                         .gates_stride = gate.stride,
                         .gate_column = gate.column,
                         .n = l.graph().info(node.outputs[0]).columns};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.y, l.rows_for(node.outputs[0], "output_gate"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], op.y);
  return applied();
}

}  // namespace doppler::lowering
