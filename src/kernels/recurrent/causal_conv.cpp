// Checks and records causal_conv: one dispatch where each run is one row, else one for the outputs and one for the
// states.
#include "kernels/recurrent/causal_conv.h"

#include <algorithm>

#include "kernels/common/tables.h"
#include "kernels/recurrent/causal_conv.wgsl.h"
#include "kernels/recurrent/causal_conv_state.wgsl.h"
#include "kernels/recurrent/output_forms.h"
#include "kernels/recurrent/runs.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kCausalConvMostInvocations =
    64;  // small workgroups spread one row over more of the device
constexpr uint32_t kMostKernel = 16;

constexpr Variant<CausalConv> kCausalConvRows[] = {{"causal_conv.portable"}};

Result<void> check(const Context& ctx, const CausalConv& op) {
  const uint32_t width = op.gated ? 3 * op.n : op.n;
  if (op.n == 0 || op.kernel < 2 || op.kernel > kMostKernel || op.x_column + width > op.x_stride) {
    return fail(ErrorKind::kInternal,
                "causal_conv of %u channels over %u positions, columns %u to %u of %u; allowed are 2 to %u "
                "positions.",
                op.n, op.kernel, op.x_column, op.x_column + width, op.x_stride, kMostKernel);
  }
  DP_CHECK(check_view(op.x, uint64_t{ctx.max_rows} * op.x_stride * sizeof(float), "x of causal_conv"));
  DP_CHECK(check_view(op.weight, (op.kernel + (op.has_bias ? 1ull : 0)) * op.n * sizeof(float),
                      "weight of causal_conv"));
  DP_CHECK(check_view(op.state, (op.kernel - 1ull) * op.n * state_slots(ctx) * sizeof(float),
                      "state of causal_conv"));
  return check_forms(ctx, op.y, op.n, "causal_conv");
}

}  // namespace

std::span<const Variant<CausalConv>> causal_conv_variants() { return kCausalConvRows; }

uint32_t most_runs(const Context& ctx, bool single) {
  if (ctx.tables.sequences == 0) return 1;
  return single ? ctx.max_rows : std::min(ctx.max_rows, ctx.tables.sequences + kMaxPieces);
}

void add_runs(Launch& launch, const Context& ctx) {
  if (ctx.tables.sequences != 0) {
    launch.substitutions.emplace_back("recurrent/runs_one", "recurrent/runs_many");
  } else if (ctx.drafts) {
    launch.substitutions.emplace_back("recurrent/runs_one", "recurrent/runs_draft");
  }
  add_tables(launch, ctx.tables);
}

Result<void> record(Context& ctx, const CausalConv& op) {
  DP_CHECK(check(ctx, op));
  DP_TRY(const auto row,
         select("causal_conv", causal_conv_variants(), op, format_text("%u over %u", op.n, op.kernel), ctx));
  const bool single = op.single_rows || ctx.max_rows == 1;
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), (op.n + 3) / 4, kCausalConvMostInvocations);
  const std::vector<gpu::WgslConst> shared = {
      u32_const("WORKGROUP", workgroup),  u32_const("CHANNELS", op.n),
      u32_const("KERNEL", op.kernel),     u32_const("X_STRIDE", op.x_stride),
      u32_const("X_COLUMN", op.x_column), bool_const("IS_GATED", op.gated)};
  Launch launch{.variant = row->name,
                .entry = "recurrent/causal_conv",
                .layout = wgsl::causal_conv::kLayout,
                .consts = shared};
  launch.consts.push_back(bool_const("IS_SINGLE", single));
  launch.consts.push_back(bool_const("HAS_BIAS", op.has_bias));
  launch.consts.push_back(bool_const("HAS_ACTIVATION", op.activation != ActivationFn::kNone));
  launch.consts.push_back(u32_const("ACTIVATE", static_cast<uint32_t>(op.activation)));
  launch.bindings = {ctx.state, op.x, op.weight, op.state};
  add_forms(ctx, launch, op.y, op.n);
  add_runs(launch, ctx);
  launch.grid = {.x = (op.n + workgroup * 4 - 1) / (workgroup * 4), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{op.n} * (op.gated ? 12 : 4) + form_bytes(op.y, op.n);
  launch.fixed_bytes = 4ull * op.n * (op.kernel + 2 * (op.kernel - 1));
  launch.operations = 2ull * op.n * op.kernel;
  DP_CHECK(dispatch(ctx, launch));
  if (single) return {};

  Launch states{.variant = "causal_conv.state",
                .entry = "recurrent/causal_conv_state",
                .layout = wgsl::causal_conv_state::kLayout,
                .consts = shared};
  states.bindings = {ctx.state, op.x, op.state};
  add_runs(states, ctx);
  states.grid = {.x = (op.n + workgroup - 1) / workgroup, .y = most_runs(ctx, false)};
  states.fixed_bytes = 8ull * op.n * (op.kernel - 1);
  return dispatch(ctx, states);
}

}  // namespace doppler::kernels
