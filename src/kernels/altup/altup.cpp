// Checks and records AltUp's operations. One row in each table: they are bound by memory.
#include "kernels/altup/altup.h"

#include "kernels/altup/altup_correct.wgsl.h"
#include "kernels/altup/altup_match.wgsl.h"
#include "kernels/altup/altup_predict.wgsl.h"
#include "kernels/altup/variants.h"
#include "kernels/common/dispatch.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kAltupMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr uint32_t kMostOfRow = 256;            // of one that sums a row of thousands
constexpr Variant<AltupMatch> kMatchRows[] = {{"altup_match.portable"}};
constexpr Variant<AltupPredict> kPredictRows[] = {{"altup_predict.portable"}};
constexpr Variant<AltupCorrect> kCorrectRows[] = {{"altup_correct.portable"}};

uint64_t rows_bytes(const Context& ctx, uint32_t n) { return uint64_t{ctx.max_rows} * n * sizeof(float); }

// The common checks of prediction and correction; weights: S a coefficient.
template <class Op>
Result<void> check(const Context& ctx, const Op& op, uint32_t coefficients) {
  if (op.n == 0) return fail(ErrorKind::kInternal, "Streams of 0 columns.");
  DP_CHECK(check_view(op.x, kAltupStreams * rows_bytes(ctx, op.n), "streams"));
  DP_CHECK(check_view(op.y, kAltupStreams * rows_bytes(ctx, op.n), "streams that are made"));
  DP_CHECK(check_view(op.router, rows_bytes(ctx, kAltupStreams), "router of streams"));
  return check_view(op.weight, uint64_t{coefficients} * kAltupStreams * sizeof(float), "weight of streams");
}

// One invocation a column.
Result<void> dispatch_columns(Context& ctx, Launch& launch, uint32_t n, float router_scale) {
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), n, kAltupMostInvocations);
  launch.consts.push_back(u32_const("WORKGROUP", workgroup));
  launch.consts.push_back(u32_const("N", n));
  launch.consts.push_back(f32_const("ROUTER_SCALE", router_scale));
  launch.grid = {.x = (n + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = (2ull * kAltupStreams + 1) * n * sizeof(float);
  launch.operations = 8ull * kAltupStreams * n;
  return dispatch(ctx, launch);
}

template <class Params>
std::span<const uint8_t> bytes_of(const Params& params) {
  return {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
}

}  // namespace

std::span<const Variant<AltupMatch>> altup_match_variants() { return kMatchRows; }
std::span<const Variant<AltupPredict>> altup_predict_variants() { return kPredictRows; }
std::span<const Variant<AltupCorrect>> altup_correct_variants() { return kCorrectRows; }

Result<void> record(Context& ctx, const AltupMatch& op) {
  if (op.n == 0) return fail(ErrorKind::kInternal, "Streams of 0 columns.");
  for (const TensorView& x : op.x) DP_CHECK(check_view(x, rows_bytes(ctx, op.n), "a stream"));
  DP_CHECK(check_view(op.y, (op.is_mean ? 1 : kAltupStreams) * rows_bytes(ctx, op.n), "y of altup_match"));
  DP_TRY(const auto row, select("altup_match", altup_match_variants(), op, format_text("%u", op.n), ctx));
  const wgsl::altup_match::Params params{.stream = ctx.max_rows * op.n};
  Launch launch{.variant = row->name, .entry = "altup/altup_match", .layout = wgsl::altup_match::kLayout};
  launch.params = bytes_of(params);
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), op.n, kMostOfRow)),
                   u32_const("N", op.n), bool_const("IS_MEAN", op.is_mean)};
  launch.bindings = {op.x[0], op.x[1], op.x[2], op.x[3], op.y};
  launch.grid = {.rows_axis = 0, .rows_per_group = 1};
  launch.bytes = (kAltupStreams + (op.is_mean ? 1ull : kAltupStreams)) * op.n * sizeof(float);
  launch.operations = 4ull * kAltupStreams * op.n;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const AltupPredict& op) {
  DP_CHECK(check(ctx, op, kAltupStreams * kAltupStreams));
  if (op.added.valid()) DP_CHECK(check_view(op.added, rows_bytes(ctx, op.n), "what streams are added"));
  DP_TRY(const auto row, select("altup_predict", altup_predict_variants(), op, format_text("%u", op.n), ctx));
  const wgsl::altup_predict::Params params{.stream = ctx.max_rows * op.n};
  Launch launch{.variant = row->name, .entry = "altup/altup_predict", .layout = wgsl::altup_predict::kLayout};
  launch.params = bytes_of(params);
  launch.consts = {bool_const("HAS_ADDED", op.added.valid())};
  launch.bindings = {op.x, op.added.valid() ? op.added : unused_binding(ctx), op.router, op.weight, op.y};
  return dispatch_columns(ctx, launch, op.n, op.router_scale);
}

Result<void> record(Context& ctx, const AltupCorrect& op) {
  DP_CHECK(check(ctx, op, kAltupStreams));
  DP_CHECK(check_view(op.made, rows_bytes(ctx, op.n), "what a layer made of its stream"));
  DP_TRY(const auto row, select("altup_correct", altup_correct_variants(), op, format_text("%u", op.n), ctx));
  const wgsl::altup_correct::Params params{.stream = ctx.max_rows * op.n};
  Launch launch{.variant = row->name, .entry = "altup/altup_correct", .layout = wgsl::altup_correct::kLayout};
  launch.params = bytes_of(params);
  launch.bindings = {op.x, op.made, op.router, op.weight, op.y};
  return dispatch_columns(ctx, launch, op.n, op.router_scale);
}

}  // namespace doppler::kernels
