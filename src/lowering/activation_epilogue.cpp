// activation_epilogue: a product that activates its sums, and writes them in the form that the next product reads. The
// sums are neither written nor read again: 100 MB a layer of a tower of 4,096 patches.
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

bool is_known(ActivationFn activation) {
  using enum ActivationFn;
  return activation == kSilu || activation == kGeluTanh || activation == kGeluErf;
}

}  // namespace

Result<Outcome> lower_activation_epilogue(Lowering& l, uint32_t index) {
  const Node& linear = l.node(index);
  if (linear.outputs.size() != 1) return not_matched();
  const std::optional<uint32_t> activate = l.only_reader(linear.outputs[0], OpKind::kActivate);
  if (!activate) return not_matched();
  const ActivationFn activation = std::get<graph::Activate>(l.node(*activate).operation).activation;
  if (!is_known(activation)) {
    return refused(format_text("no product has the activation %s", activation_name(activation)));
  }
  if (l.adapter(index)) return refused("adapters may add to the sums first");
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  const std::vector<Projection::Part>& parts = resolved->projection->parts;
  if (parts.size() != 1) return refused("the matrix lies in several number formats");
  std::string reason = kernels::refuse_epilogue(l.context(index), parts[0].weight, resolved->choices[0],
                                                kernels::EpilogueKind::kActivateSums);
  if (!reason.empty()) return refused(std::move(reason));
  const Value out = l.node(*activate).outputs[0];
  DP_TRY(const Rows y, l.rows_for(out, "activated", /*may_skip_f32=*/true));
  DP_CHECK(record_products(l, index, [&](const Projection::Part&) {
    return kernels::ActivateSums{.activation = activation, .y = y};
  }));
  l.set_form(out, y);
  l.cover(*activate);
  return applied();
}

}  // namespace doppler::lowering
