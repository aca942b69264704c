// Checks and records group_routes. One row in the table: one workgroup takes a few microseconds of a layer.
#include "kernels/moe/group_routes.h"

#include "kernels/common/dispatch.h"
#include "kernels/moe/group_routes.wgsl.h"
#include "kernels/moe/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kGroupRoutesMostInvocations = 256;

constexpr Variant<GroupRoutes> kGroupRoutesRows[] = {{.name = "group_routes.portable"}};

}  // namespace

std::span<const Variant<GroupRoutes>> group_routes_variants() { return kGroupRoutesRows; }

Result<void> record(Context& ctx, const GroupRoutes& op) {
  const GroupSizes sizes(op.routes, ctx.max_rows);
  const uint32_t slots = ctx.max_rows * op.routes.n_used;
  DP_CHECK(check_view(op.routes.view, op.routes.bytes(ctx.max_rows), "routes of group_routes"));
  DP_CHECK(check_view(op.groups, sizes.bytes(), "groups of group_routes"));
  DP_TRY(const auto row, select("group_routes", group_routes_variants(), op,
                                format_text("%u slots of %u experts", slots, op.routes.n_experts), ctx));
  Launch launch{.variant = row->name, .entry = "moe/group_routes", .layout = wgsl::group_routes::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), slots, kGroupRoutesMostInvocations)),
                   u32_const("N_EXPERTS", op.routes.n_experts), u32_const("N_USED", op.routes.n_used),
                   u32_const("FIXED_ROWS", ctx.fixed_rows), u32_const("TILES", sizes.tiles)};
  launch.bindings = {op.routes.view, ctx.state, op.groups};
  launch.bytes = uint64_t{8} * op.routes.n_used;
  launch.fixed_bytes = uint64_t{16} * sizes.tiles;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
