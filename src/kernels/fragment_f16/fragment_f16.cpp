// Checks and records FragmentF16 (linear/linear.h). One row in the table: it is bound by memory.
#include "kernels/common/dispatch.h"
#include "kernels/fragment_f16/fragment_f16.wgsl.h"
#include "kernels/fragment_f16/variants.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kFragmentF16MostInvocations = 128;
constexpr Variant<FragmentF16> kFragmentF16Rows[] = {{.name = "fragment_f16.portable"}};

}  // namespace

std::span<const Variant<FragmentF16>> fragment_f16_variants() { return kFragmentF16Rows; }

Result<void> record(Context& ctx, const FragmentF16& op) {
  if (op.k == 0 || op.k % 16 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of fragment_f16 is not a multiple of 16.", op.k);
  }
  DP_CHECK(check_view(op.x, uint64_t{4} * ctx.max_rows * op.k, "x of fragment_f16"));
  DP_CHECK(check_view(op.f16, f16_bytes(ctx.max_rows, op.k), "f16 of fragment_f16"));
  DP_TRY(const auto row, select("fragment_f16", fragment_f16_variants(), op, format_text("%u", op.k), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.k / 4, kFragmentF16MostInvocations);
  Launch launch{
      .variant = row->name, .entry = "fragment_f16/fragment_f16", .layout = wgsl::fragment_f16::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("F16_COLUMNS", op.k)};
  launch.bindings = {op.x, op.f16};
  launch.grid = {.x = (op.k / 4 + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{6} * op.k;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
