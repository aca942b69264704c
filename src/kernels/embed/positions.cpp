// Checks and records positions. One row in the table: it is bound by memory.
#include "kernels/embed/positions.h"

#include "kernels/common/dispatch.h"
#include "kernels/embed/positions_portable.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kPositionsMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<Positions> kPositionsRows[] = {{"positions.portable"}};

}  // namespace

std::span<const Variant<Positions>> positions_variants() { return kPositionsRows; }

Result<void> record(Context& ctx, const Positions& op) {
  if (op.n == 0 || op.n_positions == 0 || op.n_types == 0) {
    return fail(ErrorKind::kInternal, "positions of %u values, %u positions and %u types.", op.n,
                op.n_positions, op.n_types);
  }
  const uint64_t row_bytes = uint64_t{op.n} * sizeof(float);
  DP_CHECK(check_view(op.x, ctx.max_rows * row_bytes, "x of positions"));
  DP_CHECK(check_view(op.positions, op.n_positions * row_bytes, "the table of positions"));
  DP_CHECK(check_view(op.types, op.n_types * row_bytes, "the types of positions"));
  DP_CHECK(check_view(op.type_ids, uint64_t{ctx.max_rows} * 4, "the type ids of positions"));
  DP_TRY(const auto row, select("positions", positions_variants(), op, format_text("%u", op.n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.n, kPositionsMostInvocations);
  Launch launch{
      .variant = row->name, .entry = "embed/positions_portable", .layout = wgsl::positions_portable::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N", op.n),
                   u32_const("N_POSITIONS", op.n_positions), u32_const("N_TYPES", op.n_types),
                   u32_const("CTX_LEN", op.n_positions)};
  launch.bindings = {ctx.state, op.positions, op.types, op.type_ids, op.x};
  launch.grid = {.x = (op.n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 4 * row_bytes;
  launch.operations = 2ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
