// Checks and records QuantizeQ8 (linear/linear.h). One row in the table: it is bound by memory.
#include "kernels/common/dispatch.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize_q8/quantize_q8.wgsl.h"
#include "kernels/quantize_q8/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kQuantizeQ8MostInvocations =
    64;  // spreads one row of a few thousand values over more of the device
constexpr Variant<QuantizeQ8> kQuantizeQ8Rows[] = {{.name = "quantize_q8.portable"}};

}  // namespace

std::span<const Variant<QuantizeQ8>> quantize_q8_variants() { return kQuantizeQ8Rows; }

Result<void> record(Context& ctx, const QuantizeQ8& op) {
  if (op.k == 0 || op.k % 32 != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of quantize_q8 is not a multiple of 32.", op.k);
  }
  DP_CHECK(check_view(op.x, uint64_t{4} * ctx.max_rows * op.k, "x of quantize_q8"));
  DP_CHECK(check_view(op.q8, q8_bytes(ctx.max_rows, op.k), "q8 of quantize_q8"));
  DP_TRY(const auto row, select("quantize_q8", quantize_q8_variants(), op, format_text("%u", op.k), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.k / 4, kQuantizeQ8MostInvocations);
  Launch launch{
      .variant = row->name, .entry = "quantize_q8/quantize_q8", .layout = wgsl::quantize_q8::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("K", op.k),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, op.k) / 4)};
  launch.bindings = {op.x, op.q8};
  // After the selection of the last row there is one row, also in a plan of more rows.
  launch.grid = {.x = (op.k / 4 + workgroup - 1) / workgroup,
                 .rows_axis = 1,
                 .rows_per_group = ctx.max_rows == 1 ? 0u : 1u};
  launch.bytes = uint64_t{5} * op.k + op.k / 4;
  launch.operations = uint64_t{3} * op.k;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
