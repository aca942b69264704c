// Checks and records. One row in each table: they are bound by memory.
#include "kernels/pointwise/pointwise.h"

#include "kernels/common/dispatch.h"
#include "kernels/pointwise/activate_portable.wgsl.h"
#include "kernels/pointwise/scale_portable.wgsl.h"
#include "kernels/pointwise/variants.h"
#include "kernels/pointwise/xielu_portable.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<Scale> kScaleRows[] = {{"scale.portable"}};
constexpr Variant<Xielu> kXieluRows[] = {{"xielu.portable"}};
constexpr Variant<Activate> kActivateRows[] = {{"activate.portable"}};

// The grid, and what is counted: each value is read and written.
Result<void> dispatch_values(Context& ctx, Launch& launch, const TensorView& x, uint32_t n) {
  const uint64_t row_bytes = uint64_t{n} * sizeof(float);
  if (n == 0)
    return fail(ErrorKind::kInternal, "%s of rows of 0 values.", std::string(launch.variant).c_str());
  DP_CHECK(check_view(x, ctx.max_rows * row_bytes, "x of a pointwise operation"));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), n, kMostInvocations);
  launch.consts.push_back(u32_const("WORKGROUP", workgroup));
  launch.consts.push_back(u32_const("N", n));
  launch.grid = {.x = (n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 2 * row_bytes;
  launch.operations = 8ull * n;
  return dispatch(ctx, launch);
}

}  // namespace

std::span<const Variant<Scale>> scale_variants() { return kScaleRows; }
std::span<const Variant<Xielu>> xielu_variants() { return kXieluRows; }
std::span<const Variant<Activate>> activate_variants() { return kActivateRows; }

Result<void> record(Context& ctx, const Scale& op) {
  DP_TRY(const auto row, select("scale", scale_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{
      .variant = row->name, .entry = "pointwise/scale_portable", .layout = wgsl::scale_portable::kLayout};
  launch.consts = {f32_const("FACTOR", op.factor), f32_const("SOFTCAP", op.softcap)};
  launch.bindings = {op.x};
  return dispatch_values(ctx, launch, op.x, op.n);
}

Result<void> record(Context& ctx, const Xielu& op) {
  DP_CHECK(check_view(op.numbers, 4 * sizeof(float), "the numbers of xielu"));
  DP_TRY(const auto row, select("xielu", xielu_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{
      .variant = row->name, .entry = "pointwise/xielu_portable", .layout = wgsl::xielu_portable::kLayout};
  launch.bindings = {op.x, op.numbers};
  return dispatch_values(ctx, launch, op.x, op.n);
}

Result<void> record(Context& ctx, const Activate& op) {
  const char* name = activation_name(op.activation);
  DP_TRY(const auto row, select("activate", activate_variants(), op, format_text("%s %u", name, op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "pointwise/activate_portable",
                .layout = wgsl::activate_portable::kLayout};
  launch.consts = {u32_const("ACTIVATE", static_cast<uint32_t>(op.activation))};
  launch.bindings = {op.x};
  return dispatch_values(ctx, launch, op.x, op.n);
}

}  // namespace doppler::kernels
