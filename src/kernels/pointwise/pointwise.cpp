// Checks and records. One row in each table: they are bound by memory.
#include "kernels/pointwise/pointwise.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/measured.h"
#include "kernels/pointwise/activate_portable.wgsl.h"
#include "kernels/pointwise/concat_portable.wgsl.h"
#include "kernels/pointwise/multiply_portable.wgsl.h"
#include "kernels/pointwise/scale_portable.wgsl.h"
#include "kernels/pointwise/sparsify_portable.wgsl.h"
#include "kernels/pointwise/variants.h"
#include "kernels/pointwise/xielu_portable.wgsl.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kPointwiseMostInvocations = 64;  // of few rows
constexpr Variant<Scale> kScaleRows[] = {{"scale.portable"}};
constexpr uint32_t kPointwiseMostOfRow = 256;  // a row of sparsify is of thousands
constexpr Variant<Xielu> kXieluRows[] = {{"xielu.portable"}};
constexpr Variant<Multiply> kMultiplyRows[] = {{"multiply.portable"}};
constexpr Variant<Concat> kConcatRows[] = {{"concat.portable"}};
constexpr Variant<Sparsify> kSparsifyRows[] = {{"sparsify.portable"}};

Result<void> check_part(const Context& ctx, const PartOfRows& part, uint32_t n, const char* what) {
  if (part.stride != 0 && part.column + n > part.stride) {
    return fail(ErrorKind::kInternal, "%u columns from column %u on do not fit rows of %u.", n, part.column,
                part.stride);
  }
  const uint64_t floats = part.stride == 0 ? n : uint64_t{ctx.max_rows} * part.stride;
  return check_view(part.buffer, floats * sizeof(float), what);
}
constexpr Variant<Activate> kActivateRows[] = {{"activate.portable"}};

// The grid, and what is counted: each value is read and written.
Result<void> dispatch_values(Context& ctx, Launch& launch, const TensorView& x, uint32_t n) {
  const uint64_t row_bytes = uint64_t{n} * sizeof(float);
  if (n == 0)
    return fail(ErrorKind::kInternal, "%s of rows of 0 values.", std::string(launch.variant).c_str());
  DP_CHECK(check_view(x, ctx.max_rows * row_bytes, "x of a pointwise operation"));
  const uint32_t workgroup = workgroup_for(
      ctx.plan.caps(), n, ctx.max_rows > kRowsThatFill ? kMostInvocationsOfMany : kPointwiseMostInvocations);
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
std::span<const Variant<Multiply>> multiply_variants() { return kMultiplyRows; }
std::span<const Variant<Concat>> concat_variants() { return kConcatRows; }
std::span<const Variant<Sparsify>> sparsify_variants() { return kSparsifyRows; }
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

Result<void> record(Context& ctx, const Multiply& op) {
  DP_CHECK(check_part(ctx, op.x, op.n, "x of multiply"));
  DP_CHECK(check_part(ctx, op.u, op.is_one ? 1 : op.n, "u of multiply"));
  DP_TRY(const auto row, select("multiply", multiply_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "pointwise/multiply_portable",
                .layout = wgsl::multiply_portable::kLayout};
  launch.consts = {
      u32_const("X_STRIDE", op.x.stride), u32_const("X_COLUMN", op.x.column),
      u32_const("U_STRIDE", op.u.stride), u32_const("U_COLUMN", op.u.column),
      bool_const("IS_ONE", op.is_one),    u32_const("ACTIVATE", static_cast<uint32_t>(op.activation))};
  launch.bindings = {op.x.buffer, op.u.buffer, op.y};
  return dispatch_values(ctx, launch, op.y, op.n);
}

Result<void> record(Context& ctx, const Concat& op) {
  if (op.n == 0 || op.m == 0) return fail(ErrorKind::kInternal, "concat of %u and %u columns.", op.n, op.m);
  DP_CHECK(check_part(ctx, op.x, op.n, "x of concat"));
  DP_CHECK(check_part(ctx, op.y, op.m, "y of concat"));
  DP_TRY(const auto row, select("concat", concat_variants(), op, format_text("%u and %u", op.n, op.m), ctx));
  Launch launch{
      .variant = row->name, .entry = "pointwise/concat_portable", .layout = wgsl::concat_portable::kLayout};
  launch.consts = {u32_const("X_COLUMNS", op.n), u32_const("X_STRIDE", op.x.stride),
                   u32_const("X_COLUMN", op.x.column), u32_const("Y_STRIDE", op.y.stride),
                   u32_const("Y_COLUMN", op.y.column)};
  launch.bindings = {op.x.buffer, op.y.buffer, op.out};
  return dispatch_values(ctx, launch, op.out, op.n + op.m);
}

Result<void> record(Context& ctx, const Sparsify& op) {
  DP_CHECK(check_part(ctx, op.x, op.n, "x of sparsify"));
  DP_TRY(const auto row, select("sparsify", sparsify_variants(), op, format_text("%u", op.n), ctx));
  Launch launch{.variant = row->name,
                .entry = "pointwise/sparsify_portable",
                .layout = wgsl::sparsify_portable::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), op.n, kPointwiseMostOfRow)),
                   u32_const("STRIDE", op.x.stride), u32_const("COLUMN", op.x.column), u32_const("N", op.n),
                   f32_const("DEVIATIONS", op.deviations)};
  launch.bindings = {op.x.buffer};
  launch.grid = {.rows_axis = 0, .rows_per_group = 1};
  launch.bytes = 2ull * op.n * sizeof(float);
  launch.operations = 6ull * op.n;
  return dispatch(ctx, launch);
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
