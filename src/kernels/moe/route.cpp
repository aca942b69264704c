// Checks and records route. One row in the table: one workgroup takes a few microseconds of a layer.
#include "kernels/moe/route.h"

#include "kernels/common/dispatch.h"
#include "kernels/moe/route.wgsl.h"
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kRouteMostInvocations = 128;

constexpr Variant<Route> kRouteRows[] = {{.name = "route.portable"}};

Result<void> check(const Context& ctx, const Route& op) {
  const uint32_t experts = op.y.n_experts, used = op.y.n_used;
  if (used == 0 || used > kMaxUsedExperts || experts > kMaxExperts || used > experts) {
    return fail(ErrorKind::kUnsupported,
                "%u of %u experts are chosen in %s; at most %u of at most %u can be chosen.", used, experts,
                ctx.op_label.c_str(), kMaxUsedExperts, kMaxExperts);
  }
  const uint32_t group = op.n_groups == 0 ? 0 : experts / op.n_groups;
  const uint32_t least = op.group_score == GroupScore::kSumOfTwo ? 2 : 1;
  if (group < least || experts % op.n_groups != 0 || op.groups_used == 0 || op.groups_used > op.n_groups ||
      group * op.groups_used < used) {
    return fail(ErrorKind::kUnsupported, "%u of %u experts cannot be chosen from %u of %u groups in %s.",
                used, experts, op.groups_used, op.n_groups, ctx.op_label.c_str());
  }
  DP_CHECK(check_view(op.logits, uint64_t{ctx.max_rows} * experts * sizeof(float), "logits of route"));
  if (op.bias.valid()) DP_CHECK(check_view(op.bias, experts * sizeof(float), "bias of route"));
  if (op.scales.valid()) DP_CHECK(check_view(op.scales, experts * sizeof(float), "scales of route"));
  return check_view(op.y.view, op.y.bytes(ctx.max_rows), "routes of route");
}

// Weights that sum to 1 of a softmax over all experts are the softmax over the chosen, which needs no pass over all.
RouterScore score_of(const Route& op) {
  const bool is_softmax_of_chosen = op.score == RouterScore::kSoftmax && op.norm_weights &&
                                    op.norm_epsilon == 0 && op.n_groups == 1 && !op.bias.valid();
  return is_softmax_of_chosen ? RouterScore::kSoftmaxOfChosen : op.score;
}

}  // namespace

std::span<const Variant<Route>> route_variants() { return kRouteRows; }

Result<void> record(Context& ctx, const Route& op) {
  DP_CHECK(check(ctx, op));
  const uint32_t experts = op.y.n_experts, used = op.y.n_used;
  DP_TRY(const auto row,
         select("route", route_variants(), op,
                format_text("%u of %u, %s", used, experts, router_score_name(op.score)), ctx));
  Launch launch{.variant = row->name, .entry = "moe/route", .layout = wgsl::route::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), experts, kRouteMostInvocations)),
                   u32_const("N_EXPERTS", experts),
                   u32_const("N_USED", used),
                   u32_const("SCORE", static_cast<uint32_t>(score_of(op))),
                   bool_const("HAS_BIAS", op.bias.valid()),
                   u32_const("GROUPS", op.n_groups),
                   u32_const("GROUPS_USED", op.groups_used),
                   bool_const("TWO_BEST", op.group_score == GroupScore::kSumOfTwo),
                   bool_const("NORM", op.norm_weights),
                   f32_const("NORM_EPS", op.norm_epsilon),
                   f32_const("SCALE", op.weight_scale),
                   bool_const("HAS_SCALES", op.scales.valid())};
  launch.bindings = {op.logits, op.bias.valid() ? op.bias : op.logits,
                     op.scales.valid() ? op.scales : op.logits, op.y.view};
  launch.grid = {.rows_axis = 0, .rows_per_group = 1};
  launch.bytes = uint64_t{4} * experts + uint64_t{8} * used;
  launch.operations = uint64_t{experts} * experts;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
