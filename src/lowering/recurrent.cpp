// The plain rules of layers with a recurrent state: a kernel for each operation.
#include "lowering/recurrent.h"

#include "kernels/recurrent/output_gate.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// True if each row of the plan is of another sequence.
bool has_single_rows(const Lowering& l, const kernels::Context& ctx) {
  return ctx.tables.sequences != 0 && l.io().single_rows == ctx.max_rows;
}

Result<void> set_gates(Lowering& l, uint32_t index, kernels::Scan& op) {
  const Node& node = l.node(index);
  DP_TRY(const Columns decay, l.columns_of(node.inputs[1]));
  op.gates = decay.buffer;
  op.gates_stride = decay.stride;
  op.gate_column = decay.column;
  if (node.inputs.size() <= 2) return {};
  DP_TRY(const Columns rate, l.columns_of(node.inputs[2]));
  if (rate.buffer != decay.buffer) {
    return fail(ErrorKind::kUnsupported, "The gates of %s do not lie beside one another.",
                node.op_label.c_str());
  }
  op.rate_column = rate.column;
  return {};
}

Result<Outcome> record_scan(Lowering& l, uint32_t index, kernels::Scan op) {
  const Node& node = l.node(index);
  kernels::Context ctx = l.context(index);
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  op.y = l.scratch("scan", uint64_t{ctx.max_rows} * op.n_heads * op.value_dim);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], Rows{.f32 = op.y});
  return applied();
}

}  // namespace

Result<kernels::CausalConv> causal_conv_op(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& conv = std::get<graph::CausalConv>(node.operation);
  DP_TRY(const Columns x, l.columns_of(node.inputs[0]));
  return kernels::CausalConv{.x = x.buffer,
                             .x_stride = x.stride,
                             .x_column = x.column,
                             .weight = l.weights().node_vectors[index],
                             .state = l.io().states[conv.layer].conv,
                             .y = {},
                             .n = l.graph().info(node.outputs[0]).columns,
                             .kernel = conv.kernel,
                             .has_bias = node.vectors.size() > 1,
                             .gated = conv.is_gated,
                             .activation = conv.activation,
                             .single_rows = has_single_rows(l, l.context(index))};
}

Result<kernels::Scan> gated_delta_op(Lowering& l, uint32_t index) {
  const auto& d = std::get<graph::GatedDelta>(l.node(index).operation);
  kernels::Scan op{.rule = kernels::ScanRule::kGatedDelta,
                   .vectors = l.weights().node_vectors[index],
                   .state = l.io().states[d.layer].scan,
                   .n_heads = d.n_heads,
                   .n_key_heads = d.n_key_heads,
                   .is_tiled = d.is_tiled,
                   .key_dim = d.key_dim,
                   .value_dim = d.value_dim,
                   .single_rows = has_single_rows(l, l.context(index))};
  DP_CHECK(set_gates(l, index, op));
  return op;
}

Result<kernels::GatedNorm> gated_norm_op(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& norm = std::get<graph::GatedNorm>(node.operation);
  DP_TRY(const Columns gate, l.columns_of(node.inputs[1]));
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  return kernels::GatedNorm{.x = {},
                            .gates = gate.buffer,
                            .gates_stride = gate.stride,
                            .gate_column = gate.column,
                            .weight = l.weights().vectors[node.vectors[0].index],
                            .y = {},
                            .n = n,
                            .group = norm.group,
                            .shares_weight = l.graph().info(node.vectors[0]).shape[0] != n,
                            .gate_first = norm.gate_first,
                            .eps = norm.eps};
}

Result<Outcome> lower_causal_conv(Lowering& l, uint32_t index) {
  if (l.io().keeps_rows) {
    return fail(ErrorKind::kUnsupported,
                "Only delta_step keeps states after each row, and it does not apply to %s.",
                l.node(index).op_label.c_str());
  }
  DP_TRY(kernels::CausalConv op, causal_conv_op(l, index));
  const Value y = l.node(index).outputs[0];
  DP_TRY(op.y, l.rows_for(y, "conv"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(y, op.y);
  return applied();
}

Result<Outcome> lower_gated_delta(Lowering& l, uint32_t index) {
  DP_TRY(kernels::Scan op, gated_delta_op(l, index));
  return record_scan(l, index, std::move(op));
}

Result<Outcome> lower_mamba2(Lowering& l, uint32_t index) {
  const auto& m = std::get<graph::Mamba2>(l.node(index).operation);
  kernels::Scan op{.rule = kernels::ScanRule::kMamba2,
                   .vectors = l.weights().node_vectors[index],
                   .state = l.io().states[m.layer].scan,
                   .n_heads = m.n_heads,
                   .n_key_heads = m.n_key_heads,
                   .key_dim = m.key_dim,
                   .value_dim = m.value_dim,
                   .single_rows = has_single_rows(l, l.context(index))};
  DP_CHECK(set_gates(l, index, op));
  return record_scan(l, index, std::move(op));
}

Result<Outcome> lower_gated_norm(Lowering& l, uint32_t index) {
  DP_TRY(kernels::GatedNorm op, gated_norm_op(l, index));
  const Node& node = l.node(index);
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
