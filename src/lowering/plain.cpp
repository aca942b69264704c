// The plain rules: a kernel for each operation.
#include "kernels/add/add.h"
#include "kernels/embed/embed.h"
#include "kernels/glu/glu.h"
#include "kernels/heads/heads.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/rms_norm/rms_norm.h"
#include "lowering/adapter_products.h"
#include "lowering/attention_inputs.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

namespace {

// True if a q or k is normalised here as a whole and attention may do that itself.
bool is_row_norm_of_attention(const Lowering& l, uint32_t index) {
  Value head = l.node(index).outputs[0];
  if (const auto rope = l.only_reader(head, OpKind::kRope)) head = l.node(*rope).outputs[0];
  const auto attention = l.only_reader(head, OpKind::kAttention);
  return attention && l.weights().head_norms[*attention].valid();
}

// Only q is rotated, in place.
Result<Outcome> lower_attention_to_earlier(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& a = std::get<graph::Attention>(node.operation);
  const Value q = node.inputs[0];
  if (l.form_as<Heads>(q)) DP_CHECK(settle_heads(l, index, q, q));
  DP_TRY(const Columns columns, l.columns_of(q));
  if (columns.stride != a.n_heads * a.head_dim) {
    return fail(ErrorKind::kUnsupported, "The q of %s is not there as rows of its own.",
                node.op_label.c_str());
  }
  kernels::Attention op = attention_op(l, index);
  op.q = columns.buffer;
  kernels::Context ctx = l.context(index);
  DP_TRY(const kernels::AttentionChoice choice, kernels::resolve_attention(ctx, op));
  DP_CHECK(record_attention(l, index, choice, op, l.node(index).outputs[0]));
  return applied();
}

}  // namespace

Result<Outcome> lower_embed(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const Value x = node.outputs[0];
  const bool is_residual =
      l.graph().info(node.matrices[0]).tensor == TensorId::kEmbedding && !l.is_next(index);
  const TensorView y =
      l.scratch(is_residual ? "x" : node.op_label, uint64_t{l.rows(x)} * l.graph().info(x).columns);
  const std::optional<HostRows>& host = l.weights().host_rows;
  const auto& embed = std::get<graph::Embed>(node.operation);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::Embed{.table = l.weights().tables[index],
                                               .tokens = host && host->node == index ? host->numbers
                                                         : embed.is_next             ? l.io().next.tokens
                                                                                     : l.io().tokens,
                                               .y = y,
                                               .scale = embed.scale}));
  DP_CHECK(record_embedding_adapter(l, index, y));
  l.set_form(x, Rows{.f32 = y});
  return applied();
}

Result<Outcome> lower_rms_norm(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto* columns = l.form_as<Columns>(node.inputs[0]);
  const uint32_t n = l.graph().info(node.inputs[0]).columns;
  if (columns && columns->stride != n) {
    const float eps = std::get<graph::RmsNorm>(node.operation).eps;
    if (is_row_norm_of_attention(l, index)) {
      l.set_form(node.outputs[0],
                 Heads{.columns = *columns, .is_normed = true, .norm_eps = eps, .row_norm = index});
    } else {
      DP_CHECK(norm_in_place(l, index, *columns, n, eps));
      l.set_form(node.outputs[0], Columns(*columns));
    }
    return applied();
  }
  kernels::RmsNorm op{.weight = l.weights().vectors[node.vectors[0].index],
                      .n = l.graph().info(node.outputs[0]).columns,
                      .eps = std::get<graph::RmsNorm>(node.operation).eps,
                      .rows = l.selected_rows(index)};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.y, l.rows_for(node.outputs[0], "normed"));
  kernels::Context ctx = l.unselected_context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(node.outputs[0], op.y);
  return applied();
}

Result<Outcome> lower_linear(Lowering& l, uint32_t index) {
  const TensorView y = l.product_buffer(index);
  const uint32_t n = l.weights().products[index].n;
  DP_TRY(std::optional<kernels::LowRankUp> up, record_low(l, index));
  DP_CHECK(record_products(l, index, [&](const Projection::Part& part) {
    return kernels::Store{.y = y, .y_stride = n, .y_column = part.column};
  }));
  DP_CHECK(record_up(l, index, std::move(up), y, n));
  l.set_product(index, y);
  return applied();
}

// The readers of heads normalise and rotate them, with two exceptions: the norm follows the rotation, or it is not of
// an attention's q or k. Then its weight is bound by itself, or it has none.
Result<Outcome> lower_head_norm(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& norm = std::get<graph::HeadNorm>(node.operation);
  if (l.form_as<Heads>(node.inputs[0])) {
    DP_CHECK(settle_heads(l, index, node.inputs[0], node.inputs[0]));
  }
  DP_TRY(const Columns columns, l.columns_of(node.inputs[0]));
  if (node.vectors.empty() || l.weights().vectors[node.vectors[0].index].valid()) {
    DP_CHECK(norm_in_place(l, index, columns, norm.head_dim, norm.eps));
    l.set_form(node.outputs[0], columns);
    return applied();
  }
  l.set_form(node.outputs[0], Heads{.columns = columns, .is_normed = true, .norm_eps = norm.eps});
  return applied();
}

Result<Outcome> lower_rope(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  Heads heads;
  if (const auto* normed = l.form_as<Heads>(node.inputs[0])) {
    heads = *normed;
  } else {
    DP_TRY(heads.columns, l.columns_of(node.inputs[0]));
  }
  if (heads.is_rotated) return fail(ErrorKind::kUnsupported, "A rotation turns what is rotated already.");
  heads.is_rotated = true;
  heads.rope = std::get<graph::Rope>(node.operation);
  l.set_form(node.outputs[0], heads);
  return applied();
}

Result<Outcome> lower_attention(Lowering& l, uint32_t index) {
  if (l.node(index).reads_earlier_cache()) return lower_attention_to_earlier(l, index);
  DP_TRY(AttentionOps ops, attention_ops(l, index));
  DP_CHECK(settle_row_norms(l, index, ops));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, ops.rope));
  DP_TRY(const kernels::AttentionChoice choice, kernels::resolve_attention(ctx, ops.attention));
  DP_CHECK(record_attention(l, index, choice, ops.attention, l.node(index).outputs[0]));
  return applied();
}

Result<Outcome> lower_gated(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto *gate = l.form_as<Columns>(node.inputs[0]), *up = l.form_as<Columns>(node.inputs[1]);
  const uint32_t n = l.graph().info(node.outputs[0]).columns;
  if (!gate || !up || gate->buffer != up->buffer || gate->column != 0 || up->column != n ||
      up->stride != 2 * n) {
    return fail(ErrorKind::kUnsupported, "Gates and ups do not lie beside one another.");
  }
  const auto& gated = std::get<graph::Gated>(node.operation);
  DP_TRY(const Rows y, l.rows_for(node.outputs[0], "gated"));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(
      ctx, kernels::Glu{
               .gate_up = gate->buffer, .y = y, .n = n, .activate = gated.activation, .limit = gated.limit}));
  l.set_form(node.outputs[0], y);
  return applied();
}

Result<Outcome> lower_add(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const Value sum = node.outputs[0];
  kernels::Add op{.n = l.graph().info(sum).columns};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.y, l.f32_of(node.inputs[1]));
  op.sum = l.scratch("x", uint64_t{l.rows(sum)} * op.n);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(sum, Rows{.f32 = op.sum});
  return applied();
}

Result<Outcome> lower_scale(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (!l.is_read_out(node.inputs[0], index)) {
    return fail(ErrorKind::kUnsupported, "The value that %s scales is read again after it.",
                node.op_label.c_str());
  }
  const auto& scale = std::get<graph::Scale>(node.operation);
  DP_TRY(const TensorView x, l.f32_of(node.inputs[0]));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::Scale{.x = x,
                                               .n = l.graph().info(node.outputs[0]).columns,
                                               .factor = scale.factor,
                                               .softcap = scale.softcap}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  if (node.outputs[0] == l.graph().logits()) l.set_logits({.all = x, .best = {}});
  return applied();
}

Result<Outcome> lower_query_scale(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  DP_CHECK(
      settle_heads(l, index, node.inputs[0], node.outputs[0], std::get<graph::QueryScale>(node.operation)));
  return applied();
}

Result<Outcome> lower_xielu(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  if (!l.is_read_out(node.inputs[0], index)) {
    return fail(ErrorKind::kUnsupported, "The value that %s changes is read again after it.",
                node.op_label.c_str());
  }
  DP_TRY(const TensorView x, l.f32_of(node.inputs[0]));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::Xielu{.x = x,
                                               .numbers = l.weights().vectors[node.vectors[0].index],
                                               .n = l.graph().info(node.outputs[0]).columns}));
  l.set_form(node.outputs[0], Rows{.f32 = x});
  return applied();
}

Result<Outcome> lower_concat(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const Value y = node.outputs[0];
  DP_TRY(const Columns first, l.columns_of(node.inputs[0]));
  DP_TRY(const Columns second, l.columns_of(node.inputs[1]));
  kernels::Concat op{.x = {.buffer = first.buffer, .stride = first.stride, .column = first.column},
                     .y = {.buffer = second.buffer, .stride = second.stride, .column = second.column},
                     .out = {},
                     .n = l.graph().info(node.inputs[0]).columns,
                     .m = l.graph().info(node.inputs[1]).columns};
  op.out = l.scratch(node.op_label, uint64_t{l.rows(y)} * l.graph().info(y).columns);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(y, Rows{.f32 = op.out});
  return applied();
}

Result<Outcome> lower_logits_rows(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  l.set_form(node.outputs[0], l.form(node.inputs[0]));
  return applied();
}

}  // namespace doppler::lowering
