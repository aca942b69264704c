#include "lowering/attention_inputs.h"

#include "kernels/heads/heads.h"

namespace doppler::lowering {
namespace {

// A head that is neither normalised nor rotated has a form of its own.
std::optional<Heads> heads_of(const Lowering& l, Value value) {
  if (const auto* heads = l.form_as<Heads>(value)) return *heads;
  if (const auto* columns = l.form_as<Columns>(value)) return Heads{.columns = *columns};
  return std::nullopt;
}

bool is_rotated_alike(const Heads& q, const Heads& k) {
  return q.is_rotated == k.is_rotated &&
         (!q.is_rotated || (q.rope.table == k.rope.table && q.rope.rotary_dim == k.rope.rotary_dim &&
                            q.rope.gpt_j_pairs == k.rope.gpt_j_pairs));
}

}  // namespace

Result<void> norm_in_place(Lowering& l, uint32_t index, const Columns& columns, uint32_t head_dim,
                           float eps) {
  const Node& node = l.node(index);
  if (!l.is_read_out(node.inputs[0], index)) {
    return fail(ErrorKind::kUnsupported, "The input of %s is read again after it.", node.op_label.c_str());
  }
  kernels::Context ctx = l.context(index);
  return kernels::record(
      ctx, kernels::HeadNorm{
               .heads = {.x = columns.buffer,
                         .stride = columns.stride,
                         .column = columns.column,
                         .n_heads = l.graph().info(node.inputs[0]).columns / head_dim,
                         .head_dim = head_dim},
               .weight = node.vectors.empty() ? TensorView{} : l.weights().vectors[node.vectors[0].index],
               .eps = eps});
}

Result<void> settle_heads(Lowering& l, uint32_t index, Value value, Value settled,
                          const graph::QueryScale& scale) {
  const std::optional<Heads> heads = heads_of(l, value);
  if (!heads || heads->is_normed) {
    return fail(ErrorKind::kUnsupported, "%s does not follow only a product and a rotation.",
                l.node(index).op_label.c_str());
  }
  const uint32_t n = l.graph().info(value).columns;
  const uint32_t head_dim = heads->is_rotated ? heads->rope.head_dim : n;
  kernels::Rotate op{.heads = {.x = heads->columns.buffer,
                               .stride = heads->columns.stride,
                               .column = heads->columns.column,
                               .n_heads = n / head_dim,
                               .head_dim = head_dim},
                     .table = {},
                     .rotary_dim = heads->is_rotated ? heads->rope.rotary_dim : 0,
                     .interleaved = heads->rope.gpt_j_pairs,
                     .query_beta = scale.beta,
                     .query_ctx_len = scale.ctx_len};
  if (heads->is_rotated) {
    const RopeTable& table = l.weights().ropes[heads->rope.table];
    op.table = table.table;
    op.attention_factor = table.attention_factor;
  }
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(settled, heads->columns);
  return {};
}

kernels::Attention attention_op(const Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& a = std::get<graph::Attention>(node.operation);
  TensorView sinks;
  if (!node.vectors.empty()) sinks = l.weights().vectors[node.vectors[0].index];
  const kernels::CacheView& cache = l.io().cache[a.cache_layer];
  kernels::Attention op{.q = {},
                        .cache = cache,
                        .n_heads = a.n_heads,
                        .scale = a.scale,
                        .window = a.sliding_window,
                        .ahead = a.bidirectional ? cache.ctx_len : 0,
                        .softcap = a.softcap,
                        .sinks = sinks,
                        .max_keys = l.io().max_keys,
                        .single_rows = l.io().single_rows,
                        .each_row = l.io().attends_each_row,
                        .own_sequences = l.io().single_rows == l.rows(node.inputs[0])};
  op.spans = a.sliding_window != 0 ? l.io().spans.windows : l.io().spans.all;
  if (op.spans.valid()) {
    op.ahead = 0;
    return op;
  }
  if (a.bidirectional && a.sliding_window != 0) {  // to either side
    op.ahead = a.sliding_window / 2;
    op.window = op.ahead + 1;
  }
  return op;
}

Result<AttentionOps> attention_ops(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& a = std::get<graph::Attention>(node.operation);
  std::optional<Heads> q = heads_of(l, node.inputs[0]), k = heads_of(l, node.inputs[1]);
  if (q && k && q->is_rotated != k->is_rotated) {
    const Value rotated = node.inputs[q->is_rotated ? 0 : 1];
    DP_CHECK(settle_heads(l, index, rotated, rotated));
    q = heads_of(l, node.inputs[0]);
    k = heads_of(l, node.inputs[1]);
  }
  const auto* v = l.form_as<Columns>(node.inputs[2]);
  const uint32_t q_dim = a.n_heads * a.head_dim, kv_dim = a.n_kv_heads * a.head_dim;
  if (!q || !k || !v || q->columns.buffer != v->buffer || k->columns.buffer != v->buffer ||
      k->columns.column != q->columns.column + q_dim || v->column != k->columns.column + kv_dim) {
    return fail(ErrorKind::kUnsupported, "The q, k and v of %s do not lie beside one another.",
                node.op_label.c_str());
  }
  if (!is_rotated_alike(*q, *k) || q->is_normed != k->is_normed || q->norm_eps != k->norm_eps ||
      q->row_norm.has_value() != k->row_norm.has_value()) {
    return fail(ErrorKind::kUnsupported, "The q and k of %s are not normalised and rotated alike.",
                node.op_label.c_str());
  }
  AttentionOps ops{.rope = {.qkv = v->buffer,
                            .q_out = l.scratch("q", uint64_t{l.rows(node.inputs[0])} * q_dim),
                            .cache = l.io().cache[a.layer],
                            .table = {},
                            .norms = q->is_normed ? l.weights().head_norms[index] : TensorView{},
                            .norms_of_rows = q->row_norm.has_value(),
                            .n_heads = a.n_heads,
                            .stride = v->stride,
                            .column = q->columns.column,
                            .rotary_dim = q->is_rotated ? q->rope.rotary_dim : 0,
                            .interleaved = q->rope.gpt_j_pairs},
                   .attention = attention_op(l, index)};
  if (q->is_normed) ops.rope.norm_eps = q->norm_eps;
  if (q->is_rotated) {
    const RopeTable& table = l.weights().ropes[q->rope.table];
    ops.rope.table = table.table;
    ops.rope.attention_factor = table.attention_factor;
    const RopeIo& rope = l.io().rope;
    ops.rope.places = rope.places;
    ops.rope.axes = rope.axes;
    if (rope.places != kernels::RopePlaces::kRow) ops.rope.table = rope.table;
  }
  ops.attention.q = ops.rope.q_out;
  return ops;
}

Result<void> settle_row_norms(Lowering& l, uint32_t index, AttentionOps& ops) {
  if (!ops.rope.norms_of_rows) return {};
  for (const Value head : {l.node(index).inputs[0], l.node(index).inputs[1]}) {
    const Heads& normed = *l.form_as<Heads>(head);
    DP_CHECK(
        norm_in_place(l, *normed.row_norm, normed.columns, l.graph().info(head).columns, normed.norm_eps));
  }
  ops.rope.norms = {};
  ops.rope.norms_of_rows = false;
  return {};
}

Result<std::string> refuse_reader_reduces(Lowering& l, Value y) {
  if (!l.is_on("split_k_reduction")) return std::string("split_k_reduction is off");
  const std::optional<uint32_t> reader = l.only_reader(y, OpKind::kLinear);
  if (!reader) return std::string("it is not read by only one product");
  return l.refuse_prologue(*reader, kernels::PrologueKind::kSplitPartials);
}

Result<void> record_attention(Lowering& l, uint32_t index, const kernels::AttentionChoice& choice,
                              const kernels::Attention& op, Value y) {
  kernels::Context ctx = l.context(index);
  if (choice.leaves) {
    SplitPartials partials = *choice.leaves;
    partials.partials = ctx.plan.scratch("attention partials", partials.bytes());
    l.set_form(y, partials);
    return kernels::record(ctx, choice, op, partials);
  }
  DP_TRY(const Rows rows, l.rows_for(y, "attn_y"));
  l.set_form(y, rows);
  return kernels::record(ctx, choice, op, rows);
}

}  // namespace doppler::lowering
