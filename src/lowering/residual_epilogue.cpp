// residual_epilogue: a product that adds its sums to the residual, instead of a sum after it.
#include "lowering/adapter_products.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_residual_epilogue(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const std::optional<uint32_t> add = l.only_reader(linear.outputs[0], OpKind::kAdd);
  if (!add) return not_matched();
  const Value x = other_input(l, *add, linear.outputs[0]);
  std::string reason = refuse_in_place(l, *add, x);
  if (reason.empty()) reason = refuse_adapter_in_sum(l, index);
  if (!reason.empty()) return refused(std::move(reason));
  const TensorView y = l.form_as<Rows>(x)->f32;
  const uint32_t n = l.weights().products[index].n;
  DP_CHECK(record_in_sum(l, index, y, n));
  DP_CHECK(record_products(l, index, [&](const Projection::Part& part) {
    return kernels::AddResidual{.y = y, .y_stride = n, .y_column = part.column};
  }));
  l.set_form(l.node(*add).outputs[0], Rows{.f32 = y});
  l.cover(*add);
  return applied();
}

}  // namespace doppler::lowering
