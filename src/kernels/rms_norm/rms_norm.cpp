// Checks and records rms_norm; the arithmetic is in rms_norm_row.wgsl.
#include "kernels/rms_norm/rms_norm.h"

#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/common/tables.h"
#include "kernels/rms_norm/variants.h"

namespace doppler::kernels {
namespace {

// One row is all there is in decode, so its workgroup takes what the device grants, four values an
// invocation.
constexpr uint32_t kMostInvocations = 1024;

uint32_t rows_of_y(const Context& ctx, SelectedRows rows) {
  if (rows == SelectedRows::kSampled) return ctx.tables.sequences;
  return rows == SelectedRows::kLast ? 1 : ctx.max_rows;
}

// The summand as sums of splits: rows are one split.
Result<SplitSums> summand(const Context& ctx, const RmsNorm& op) {
  if (op.add_sums.splits == 0) {
    if (!op.add.valid()) return SplitSums{};
    DP_CHECK(check_view(op.add, uint64_t{ctx.max_rows} * op.n * sizeof(float), "add of rms_norm"));
    return SplitSums{.partials = op.add, .splits = 1, .row_stride = op.n};
  }
  const SplitSums& sums = op.add_sums;
  const uint32_t rows = sums.row_stride == 0 ? 0 : sums.split_stride / sums.row_stride;
  if (op.add.valid()) return fail(ErrorKind::kInternal, "rms_norm was given two summands.");
  if (sums.row_stride < op.n || sums.row_stride % 4 != 0 || sums.split_stride % 4 != 0 ||
      rows < ctx.max_rows) {
    return fail(ErrorKind::kInternal, "rms_norm was given sums of %u rows of %u for %u of %u values.", rows,
                sums.row_stride, ctx.max_rows, op.n);
  }
  DP_CHECK(check_view(sums.partials, sums.bytes(), "sums of rms_norm"));
  return sums;
}

Result<void> check(Context& ctx, const RmsNorm& op, TensorView add) {
  const uint64_t row_bytes = static_cast<uint64_t>(op.n) * sizeof(float);
  const uint32_t out_rows = rows_of_y(ctx, op.rows);
  if (op.n == 0) return fail(ErrorKind::kInternal, "rms_norm of rows of 0 values.");
  DP_CHECK(check_view(op.x, ctx.max_rows * row_bytes, "x of rms_norm"));
  const bool has_norm = op.weight.valid() || !add.valid();
  if (has_norm) DP_CHECK(check_view(op.weight, row_bytes, "weight of rms_norm"));
  if (!has_norm && op.y.f32.valid()) {
    return fail(ErrorKind::kInternal, "rms_norm without a norm was given a second f32 output.");
  }
  if (op.y.f32.valid() || (has_norm && !op.y.f16.valid())) {
    DP_CHECK(check_view(op.y.f32, out_rows * row_bytes, "y of rms_norm"));
  }
  if (op.add_weight.valid()) {
    if (!add.valid()) return fail(ErrorKind::kInternal, "rms_norm was given add_weight, but no add.");
    DP_CHECK(check_view(op.add_weight, row_bytes, "add_weight of rms_norm"));
  }
  if (op.sum_scale.valid()) {
    if (!add.valid() || op.rows != SelectedRows::kAll) {
      return fail(ErrorKind::kInternal, "rms_norm scales sums of all rows alone.");
    }
    DP_CHECK(check_view(op.sum_scale, sizeof(float), "sum_scale of rms_norm"));
  }
  if (op.y.q8.valid()) {
    if (op.n % 32 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of rms_norm's q8 output is not a multiple of 32.",
                  op.n);
    }
    DP_CHECK(check_view(op.y.q8, q8_bytes(out_rows, op.n), "q8 of rms_norm"));
  }
  if (op.y.f16.valid()) {
    if (op.n % 16 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of rms_norm's f16 output is not a multiple of 16.",
                  op.n);
    }
    DP_CHECK(check_view(op.y.f16, f16_bytes(out_rows, op.n), "f16 of rms_norm"));
  }
  return {};
}

}  // namespace

Result<void> record(Context& ctx, const RmsNorm& op) {
  DP_TRY(const SplitSums added, summand(ctx, op));
  const TensorView add = added.partials;
  DP_CHECK(check(ctx, op, add));
  const uint64_t row_bytes = static_cast<uint64_t>(op.n) * sizeof(float);
  const uint32_t out_rows = rows_of_y(ctx, op.rows);
  const bool has_norm = op.weight.valid() || !add.valid();
  const bool has_scale = op.sum_scale.valid();
  DP_TRY(const auto row, select("rms_norm", rms_norm_variants(), op, format_text("%u", op.n), ctx));

  Launch launch{.variant = row->name, .entry = row->entry, .layout = row->layout};
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), (op.n + 3) / 4, kMostInvocations)),
                   u32_const("N", op.n),
                   f32_const("EPS", op.eps),
                   bool_const("HAS_ADD", add.valid()),
                   u32_const("ADD_SPLITS", std::max(1u, added.splits)),
                   u32_const("ADD_ROW", added.row_stride),
                   u32_const("ADD_SPLIT", added.split_stride),
                   bool_const("HAS_ADD_NORM", op.add_weight.valid()),
                   bool_const("HAS_SCALE", has_scale),
                   bool_const("HAS_NORM", has_norm),
                   bool_const("HAS_Q8", op.y.q8.valid()),
                   bool_const("HAS_F16", op.y.f16.valid()),
                   bool_const("HAS_F32", op.y.f32.valid()),
                   u32_const("F16_COLUMNS", op.n),
                   bool_const("SELECTS", op.rows != SelectedRows::kAll),
                   u32_const("Q8_PLANE1", q8_plane1_offset(out_rows, op.n) / 4)};
  if (op.rows == SelectedRows::kSampled) {
    launch.substitutions.emplace_back("rms_norm/selected_row_last", "rms_norm/selected_row_sampled");
    add_tables(launch, ctx.tables);
  }
  if (has_scale) launch.substitutions.emplace_back("rms_norm/selected_row_last", "rms_norm/scaled_rows");
  launch.subgroups = (row->needs & kNeedSubgroups) != 0;
  const TensorView some_weight = has_norm ? op.weight : add;
  launch.bindings = {has_scale ? op.sum_scale : ctx.state,
                     op.x,
                     add.valid() ? add : op.weight,
                     some_weight,
                     op.y.f32.valid() ? op.y.f32 : unused_binding(ctx),
                     op.y.q8.valid() ? op.y.q8 : unused_binding(ctx),
                     op.y.f16.valid() ? op.y.f16 : unused_binding(ctx),
                     op.add_weight.valid() ? op.add_weight : some_weight};
  launch.grid = {.x = op.rows == SelectedRows::kSampled ? out_rows : 1,
                 .rows_axis = 0,
                 .rows_per_group = op.rows != SelectedRows::kAll || ctx.max_rows == 1 ? 0u : 1u};
  launch.bytes = row_bytes * (add.valid() ? 3 + added.splits : 2) + (op.y.q8.valid() ? op.n + op.n / 4 : 0) +
                 (op.y.f16.valid() ? 2ull * op.n : 0);
  launch.fixed_bytes = row_bytes;
  launch.operations = 4ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
