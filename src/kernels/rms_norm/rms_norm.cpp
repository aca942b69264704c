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
constexpr uint32_t kRmsNormMostInvocations = 1024;

uint32_t rows_of_y(const Context& ctx, SelectedRows rows) {
  if (rows == SelectedRows::kSampled) return ctx.tables.sequences;
  return rows == SelectedRows::kLast ? 1 : ctx.max_rows;
}

// The constants and bindings of rms_norm_row.wgsl. Views that are invalid are not there; without a weight there is no
// norm.
struct NormDispatch {
  TensorView x, weight = {};
  SplitSums branch = {};  // rows are one split
  TensorView branch_weight = {}, scale = {};
  Rows y = {};
  uint32_t n = 0;
  float eps = 0;
  SelectedRows rows = SelectedRows::kAll;

  uint64_t row_bytes() const { return static_cast<uint64_t>(n) * sizeof(float); }
  bool has_branch() const { return branch.partials.valid(); }
};

Result<SplitSums> sums_of(const Context& ctx, const Branch& branch, uint32_t n) {
  if (const auto* rows = std::get_if<TensorView>(&branch.values)) {
    DP_CHECK(check_view(*rows, uint64_t{ctx.max_rows} * n * sizeof(float), "add of rms_norm"));
    return SplitSums{.partials = *rows, .splits = 1, .row_stride = n};
  }
  const auto& sums = std::get<SplitSums>(branch.values);
  const uint32_t rows = sums.row_stride == 0 ? 0 : sums.split_stride / sums.row_stride;
  if (sums.row_stride < n || sums.row_stride % 4 != 0 || sums.split_stride % 4 != 0 || rows < ctx.max_rows) {
    return fail(ErrorKind::kInternal, "rms_norm was given sums of %u rows of %u for %u of %u values.", rows,
                sums.row_stride, ctx.max_rows, n);
  }
  DP_CHECK(check_view(sums.partials, sums.bytes(), "sums of rms_norm"));
  return sums;
}

Result<void> check(const Context& ctx, const NormDispatch& op) {
  const uint32_t out_rows = rows_of_y(ctx, op.rows);
  if (op.n == 0) return fail(ErrorKind::kInternal, "rms_norm of rows of 0 values.");
  DP_CHECK(check_view(op.x, ctx.max_rows * op.row_bytes(), "x of rms_norm"));
  if (op.branch_weight.valid()) {
    DP_CHECK(check_view(op.branch_weight, op.row_bytes(), "norm weight of rms_norm's branch"));
  }
  if (op.scale.valid()) {
    if (op.rows != SelectedRows::kAll) {
      return fail(ErrorKind::kInternal, "rms_norm scales sums only of all rows.");
    }
    DP_CHECK(check_view(op.scale, sizeof(float), "scale of rms_norm"));
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

// Checks a dispatch with a norm.
Result<void> check_norm(const Context& ctx, const NormDispatch& op) {
  DP_CHECK(check_view(op.weight, op.row_bytes(), "weight of rms_norm"));
  if (!op.y.f32.valid() && op.y.f16.valid()) return {};
  return check_view(op.y.f32, rows_of_y(ctx, op.rows) * op.row_bytes(), "y of rms_norm");
}

Result<void> record_dispatch(Context& ctx, const NormDispatch& op) {
  DP_CHECK(check(ctx, op));
  const uint32_t out_rows = rows_of_y(ctx, op.rows);
  const bool has_norm = op.weight.valid(), has_scale = op.scale.valid();
  DP_TRY(const auto row,
         select("rms_norm", rms_norm_variants(), NormShape{op.n}, format_text("%u", op.n), ctx));

  Launch launch{.variant = row->name, .entry = row->entry, .layout = row->layout};
  launch.consts = {
      u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), (op.n + 3) / 4, kRmsNormMostInvocations)),
      u32_const("N", op.n),
      f32_const("EPS", op.eps),
      bool_const("HAS_ADD", op.has_branch()),
      u32_const("ADD_SPLITS", std::max(1u, op.branch.splits)),
      u32_const("ADD_ROW", op.branch.row_stride),
      u32_const("ADD_SPLIT", op.branch.split_stride),
      bool_const("HAS_ADD_NORM", op.branch_weight.valid()),
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
  const TensorView some_weight = has_norm ? op.weight : op.branch.partials;
  launch.bindings = {has_scale ? op.scale : ctx.state,
                     op.x,
                     op.has_branch() ? op.branch.partials : op.weight,
                     some_weight,
                     op.y.f32.valid() ? op.y.f32 : unused_binding(ctx),
                     op.y.q8.valid() ? op.y.q8 : unused_binding(ctx),
                     op.y.f16.valid() ? op.y.f16 : unused_binding(ctx),
                     op.branch_weight.valid() ? op.branch_weight : some_weight};
  launch.grid = {.x = op.rows == SelectedRows::kSampled ? out_rows : 1,
                 .rows_axis = 0,
                 .rows_per_group = op.rows != SelectedRows::kAll || ctx.max_rows == 1 ? 0u : 1u};
  launch.bytes = op.row_bytes() * (op.has_branch() ? 3 + op.branch.splits : 2) +
                 (op.y.q8.valid() ? op.n + op.n / 4 : 0) + (op.y.f16.valid() ? 2ull * op.n : 0);
  launch.fixed_bytes = op.row_bytes();
  launch.operations = 4ull * op.n;
  return dispatch(ctx, launch);
}

}  // namespace

Result<void> record(Context& ctx, const RmsNorm& op) {
  const NormDispatch norm{
      .x = op.x, .weight = op.weight, .y = op.y, .n = op.n, .eps = op.eps, .rows = op.rows};
  DP_CHECK(check_norm(ctx, norm));
  return record_dispatch(ctx, norm);
}

Result<void> record(Context& ctx, const AddBranch& op) {
  NormDispatch sum{
      .x = op.x, .branch_weight = op.branch.norm_weight, .scale = op.scale, .n = op.n, .eps = op.eps};
  DP_TRY(sum.branch, sums_of(ctx, op.branch, op.n));
  if (const auto* forms = std::get_if<SumForms>(&op.then)) {
    sum.y = {.q8 = forms->q8, .f16 = forms->f16};
    return record_dispatch(ctx, sum);
  }
  const auto& norm = std::get<NormOfSum>(op.then);
  sum.weight = norm.weight;
  sum.y = norm.y;
  sum.rows = norm.rows;
  DP_CHECK(check_norm(ctx, sum));
  return record_dispatch(ctx, sum);
}

}  // namespace doppler::kernels
