#include "lowering/adapter_products.h"

#include "kernels/low_rank/low_rank.h"

namespace doppler::lowering {
namespace {

kernels::Context context_of_adapter(const Lowering& l, uint32_t index) {
  kernels::Context ctx = l.context(index);
  ctx.op_label += ".adapter";
  return ctx;
}

}  // namespace

Result<std::optional<kernels::LowRankUp>> record_low(Lowering& l, uint32_t index) {
  const AdapterProduct* adapter = l.adapter(index);
  if (!adapter) return std::optional<kernels::LowRankUp>();
  const Node& node = l.node(index);
  DP_TRY(const kernels::Prologue x, l.prologue(node.inputs[0]));
  const auto width = static_cast<uint32_t>(adapter->ends.size()) * adapter->rank;
  const kernels::LowRankDown down{.rows_x = std::get_if<Rows>(&x),
                                  .deferred_x = std::get_if<DeferredNorm>(&x),
                                  .a = adapter->a,
                                  .low = l.scratch("adapter.low", uint64_t{l.rows(node.inputs[0])} * width),
                                  .k = l.graph().info(node.inputs[0]).columns,
                                  .width = width,
                                  .slots = adapter->slots,
                                  .adapters = l.adapter_rows(node.inputs[0])};
  kernels::Context ctx = context_of_adapter(l, index);
  DP_CHECK(kernels::record(ctx, down));
  return std::optional(kernels::LowRankUp{.low = down.low,
                                          .tokens = {},
                                          .b = adapter->b,
                                          .y = {},
                                          .n = adapter->ends.back(),
                                          .rank = adapter->rank,
                                          .slots = adapter->slots,
                                          .ends = adapter->ends,
                                          .is_affine = adapter->is_affine,
                                          .adapters = down.adapters});
}

Result<void> record_up(Lowering& l, uint32_t index, std::optional<kernels::LowRankUp> up, TensorView y,
                       uint32_t stride) {
  if (!up) return {};
  up->y = y;
  up->y_stride = stride;
  kernels::Context ctx = context_of_adapter(l, index);
  return kernels::record(ctx, *up);
}

Result<void> record_in_sum(Lowering& l, uint32_t index, TensorView y, uint32_t stride) {
  DP_TRY(std::optional<kernels::LowRankUp> up, record_low(l, index));
  return record_up(l, index, std::move(up), y, stride);
}

Result<void> record_embedding_adapter(Lowering& l, uint32_t index, TensorView y) {
  const AdapterProduct* adapter = l.adapter(index);
  if (!adapter) return {};
  const uint32_t n = l.graph().info(l.node(index).outputs[0]).columns;
  kernels::Context ctx = context_of_adapter(l, index);
  return kernels::record(ctx, kernels::LowRankUp{.low = adapter->a,
                                                 .tokens = l.io().tokens,
                                                 .b = adapter->b,
                                                 .y = y,
                                                 .n = n,
                                                 .y_stride = n,
                                                 .rank = adapter->rank,
                                                 .slots = adapter->slots,
                                                 .vocab_size = l.weights().tables[index].n,
                                                 .ends = {n},
                                                 .adapters = l.adapter_rows(l.node(index).outputs[0])});
}

std::string refuse_adapter_in_sum(const Lowering& l, uint32_t index) {
  const AdapterProduct* adapter = l.adapter(index);
  return adapter && adapter->is_affine ? "its adapters scale what the product makes" : "";
}

}  // namespace doppler::lowering
