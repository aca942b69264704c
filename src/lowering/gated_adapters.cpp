// gated_adapters: if adapters may add to gates and ups, the dispatch that adds their part also applies the gate. That
// saves a dispatch.
#include "lowering/adapter_products.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_gated_adapters(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (!l.adapter(index) || linear.outputs.size() != 2) return not_matched();
  const std::optional<uint32_t> reader = l.only_reader(linear.outputs[0], OpKind::kGated);
  if (!reader || l.only_reader(linear.outputs[1], OpKind::kGated) != reader) return not_matched();
  const auto& gated = std::get<graph::Gated>(l.node(*reader).operation);
  if (gated.limit != 0) return refused("the gate has a limit");
  if (l.rows(linear.inputs[0]) > kernels::kMostLowRankFewRows) {
    return refused("the adapters' products of many rows are made in tiles, without a gate");
  }
  const Value y = l.node(*reader).outputs[0];
  const TensorView product = l.product_buffer(index);
  const uint32_t n = l.weights().products[index].n;
  DP_TRY(std::optional<kernels::LowRankUp> up, record_low(l, index));
  DP_CHECK(record_products(l, index, [&](const Projection::Part& part) {
    return kernels::Store{.y = product, .y_stride = n, .y_column = part.column};
  }));
  up->y = product;
  up->y_stride = n;
  DP_TRY(const Rows rows, l.rows_for(y, "gated"));
  kernels::Context ctx = l.context(*reader);
  DP_CHECK(kernels::record(ctx, kernels::LowRankGate{.up = *up, .y = rows, .activate = gated.activation}));
  l.set_form(y, rows);
  l.cover(*reader);
  return applied();
}

}  // namespace doppler::lowering
