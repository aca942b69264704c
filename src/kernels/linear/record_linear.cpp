// record_linear.h: resolve, refuse, record.
#include "kernels/linear/record_linear.h"

#include "base/text.h"
#include "kernels/glu/glu.h"

namespace doppler::kernels::testing {

Result<void> record_linear(Context& ctx, const Linear& op) {
  const auto* gate = std::get_if<Gate>(&op.y);
  DP_TRY(const ProductChoice choice,
         resolve_product(ctx, op.weight, gate ? gate->activation : ActivationFn::kNone));
  if (!gate || refuse_epilogue(ctx, op.weight, choice, EpilogueKind::kGate).empty()) {
    return record(ctx, choice, op);
  }
  DP_TRY(const ProductChoice plain, resolve_product(ctx, op.weight));
  const TensorView gate_up =
      ctx.plan.scratch("gate_up", uint64_t{ctx.max_rows} * op.weight.n * sizeof(float));
  DP_CHECK(
      record(ctx, plain, Linear{.weight = op.weight, .x = op.x, .bias = op.bias, .y = Store{.y = gate_up}}));
  return record(ctx,
                Glu{.gate_up = gate_up, .y = gate->y, .n = op.weight.n / 2, .activate = gate->activation});
}

Result<void> record_linear(Context& ctx, const LinearPair& op) {
  DP_TRY(const ProductChoice first, resolve_product(ctx, op.first));
  DP_TRY(const ProductChoice second, resolve_product(ctx, op.second));
  return record(ctx, first, second, op);
}

std::string prologue_refusal(const Context& ctx, const Weight& weight, PrologueKind kind, ActivationFn gate) {
  const Result<ProductChoice> choice = resolve_product(ctx, weight, gate);
  return choice ? refuse_prologue(ctx, weight, *choice, kind) : choice.error().sentence();
}

std::string epilogue_refusal(const Context& ctx, const Weight& weight, EpilogueKind kind, ActivationFn gate) {
  const Result<ProductChoice> choice = resolve_product(ctx, weight, gate);
  return choice ? refuse_epilogue(ctx, weight, *choice, kind) : choice.error().sentence();
}

std::string pair_refusal(const Context& ctx, const Weight& first, const Weight& second,
                         const PairNeeds& needs) {
  const Result<ProductChoice> a = resolve_product(ctx, first), b = resolve_product(ctx, second);
  if (!a || !b) return (a ? b : a).error().sentence();
  return refuse_pair(ctx, first, *a, second, *b, needs);
}

Policy forced_matvec(WeightFormat format, std::string_view suffix) {
  Policy policy;
  const std::string operation = std::string("matvec.") + weight_format_info(format).name;
  policy.forced[operation] = operation + std::string(suffix);
  return policy;
}

}  // namespace doppler::kernels::testing
