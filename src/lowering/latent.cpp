// The plain rules of multi-head latent attention: a kernel for each operation.
#include "kernels/latent/latent.h"

#include "kernels/moe/every_expert.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_every_expert(Lowering& l, uint32_t index) {
  const Value routes = l.node(index).outputs[0];
  const uint32_t n = std::get<graph::EveryExpert>(l.node(index).operation).n;
  const kernels::Routes every{
      .view = l.scratch("every_expert", uint64_t{l.rows(routes)} * 2 * n), .n_experts = n, .n_used = n};
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, kernels::EveryExpert{.y = every}));
  l.set_form(routes, Routed{every});
  return applied();
}

Result<Outcome> lower_head_part(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& part = std::get<graph::HeadPart>(node.operation);
  const Value y = node.outputs[0];
  kernels::HeadPart op{.n_heads = l.graph().info(y).columns / part.n,
                       .head_dim = part.head_dim,
                       .first = part.first,
                       .n = part.n};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  op.y = l.scratch("head_part", uint64_t{l.rows(y)} * l.graph().info(y).columns);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(y, Rows{.f32 = op.y});
  return applied();
}

Result<Outcome> lower_latent_heads(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& heads = std::get<graph::LatentHeads>(node.operation);
  const auto *latent = l.form_as<Columns>(node.inputs[2]), *key = l.form_as<Columns>(node.inputs[3]);
  if (!latent || !key || latent->buffer != key->buffer) {
    return fail(ErrorKind::kUnsupported, "The latent and the key of %s do not lie beside one another.",
                node.op_label.c_str());
  }
  kernels::LatentHeads op{.kv = latent->buffer,
                          .kv_stride = latent->stride,
                          .latent_column = latent->column,
                          .key_column = key->column,
                          .n_heads = heads.n_heads,
                          .nope_dim = heads.nope_dim,
                          .rope_dim = heads.rope_dim,
                          .rank = heads.rank};
  DP_TRY(op.q, l.f32_of(node.inputs[0]));
  DP_TRY(op.absorbed, l.f32_of(node.inputs[1]));
  op.qkv = l.scratch("latent_qkv", uint64_t{l.rows(node.outputs[0])} * op.columns());
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  uint32_t column = 0;
  for (const Value& output : node.outputs) {
    l.set_form(output, Columns{.buffer = op.qkv, .stride = op.columns(), .column = column});
    column += l.graph().info(output).columns;
  }
  return applied();
}

}  // namespace doppler::lowering
