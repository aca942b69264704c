// Checks and records add. One row in the table: it is bound by memory.
#include "kernels/add/add.h"

#include "kernels/add/add_portable.wgsl.h"
#include "kernels/add/variants.h"
#include "kernels/common/dispatch.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kAddMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<Add> kAddRows[] = {{"add.portable"}};

}  // namespace

std::span<const Variant<Add>> add_variants() { return kAddRows; }

Result<void> record(Context& ctx, const Add& op) {
  if (op.n == 0) return fail(ErrorKind::kInternal, "add of rows of 0 values.");
  const uint64_t row_bytes = uint64_t{op.n} * sizeof(float);
  for (const TensorView& view : {op.x, op.y, op.sum}) {
    DP_CHECK(check_view(view, ctx.max_rows * row_bytes, "a row of add"));
  }
  DP_TRY(const auto row, select("add", add_variants(), op, format_text("%u", op.n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.n, kAddMostInvocations);
  Launch launch{.variant = row->name, .entry = "add/add_portable", .layout = wgsl::add_portable::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N", op.n)};
  launch.bindings = {op.x, op.y, op.sum};
  launch.grid = {.x = (op.n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 3 * row_bytes;
  launch.operations = op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
