// Checks and records what lies between a step's logits and the next step's first product. Read next: next_fused.wgsl.
#include "kernels/step/next.h"

#include "kernels/common/step_state.h"
#include "kernels/embed/embed_norm_row.h"
#include "kernels/step/next_fused.wgsl.h"
#include "kernels/step/variants.h"

namespace doppler::kernels {
namespace {

std::string refuse_unless_fusable(const Next& op, const gpu::Caps& caps) {
  if (!op.sample.greedy) return "the token is drawn, in dispatches of its own";
  if (!op.sample.best.valid()) return "the product before it does not leave the best of its tiles";
  return refuse_embed_norm_row(op.input, caps);
}

constexpr Variant<Next> kRows[] = {
    {.name = "next.fused", .refuse = refuse_unless_fusable},
    {.name = "next.apart"},
};

Result<void> record_fused(Context& ctx, const Next& op, std::string_view variant) {
  const Sample& sample = op.sample;
  DP_CHECK(check_view(ctx.state, sizeof(StepState), "step state"));
  DP_CHECK(check_view(sample.best, uint64_t{sample.best_count} * 2 * kWord, "best of next"));
  DP_CHECK(check_view(op.step.ring, kTokenRing * kWord, "ring of next"));
  DP_CHECK(check_embed_norm(op.input));
  Launch launch{.variant = variant, .entry = "step/next_fused", .layout = wgsl::next_fused::kLayout};
  launch.consts = {u32_const("WORKGROUP", embed_norm_workgroup(ctx.plan.caps(), op.input, sample.best_count)),
                   u32_const("COUNT", sample.best_count), u32_const("TOKEN_RING", kTokenRing),
                   u32_const("MAX_STOP_TOKENS", kMaxStopTokens)};
  launch.bindings = {ctx.state, sample.best, op.step.ring};
  launch.fixed_bytes = sizeof(StepState) + uint64_t{sample.best_count} * 2 * kWord;
  add_embed_norm(launch, op.input);
  return dispatch(ctx, launch);
}

}  // namespace

std::span<const Variant<Next>> next_variants() { return kRows; }

Result<void> record(Context& ctx, const Next& op) {
  const Weight& table = op.input.table;
  DP_TRY(const auto row, select("next", next_variants(), op,
                                format_text("%s %s %ux%u", op.sample.greedy ? "greedy" : "sampled",
                                            weight_format_info(table.format).name, table.n, table.k),
                                ctx));
  if (row == &kRows[0]) return record_fused(ctx, op, row->name);
  const std::string op_label = ctx.op_label;
  ctx.op_label = "sample";
  DP_CHECK(record(ctx, op.sample));
  Step step = op.step;
  step.token = op.sample.token;
  ctx.op_label = "step";
  DP_CHECK(record(ctx, step));
  EmbedNorm input = op.input;
  input.token = op.sample.token;
  ctx.op_label = op_label;
  return record(ctx, input);
}

}  // namespace doppler::kernels
