// Checks and records the products of adapters.
#include "kernels/low_rank/low_rank.h"

#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/common/tables.h"
#include "kernels/low_rank/low_rank_gate.wgsl.h"
#include "kernels/low_rank/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostDown = 256,
                   kMostUp = 64;  // invocations: rows of a few thousand numbers over many workgroups

Result<void> check_rows(const Context& ctx, const AdapterRows& rows) {
  const uint32_t sequences = std::max(1u, ctx.tables.sequences);
  return check_view(rows.adapters, sequences * sizeof(AdapterOfSequence), "adapters of low_rank");
}

// Adds the fragment that says which adapter a row has.
void add_rows(Launch& launch, const Context& ctx, const AdapterRows& rows) {
  launch.consts.push_back(bool_const("LAST", rows.selected));
  if (ctx.tables.sequences == 0) return;
  launch.substitutions.emplace_back("low_rank/rows_one",
                                    rows.selected ? "low_rank/rows_sampled" : "low_rank/rows_many");
  add_tables(launch, ctx.tables);
}

struct LoadedX {
  TensorView x, scales, square_sums;
  std::string_view fragment;
  float eps = 0;
};

Result<LoadedX> loaded_x(Context& ctx, const LowRankDown& op) {
  if (const DeferredNorm* norm = op.deferred_x) {
    if (ctx.max_rows != 1 || norm->k != op.k || op.k % kQ8Block != 0) {
      return fail(ErrorKind::kInternal, "low_rank_down reads a deferred norm of %u for one row of %u.",
                  norm->k, op.k);
    }
    DP_CHECK(check_view(norm->buffer, DeferredNorm::bytes(norm->k, norm->q8), "x of low_rank_down"));
    const TensorView values = norm->values();
    if (!norm->q8)
      return LoadedX{values, unused_binding(ctx), norm->square_sums(), "low_rank/x_vec4", norm->eps};
    const uint64_t plane1 = q8_plane1_offset(1, op.k);
    return LoadedX{values.sub(0, op.k), values.sub(plane1, q8_bytes(1, op.k) - plane1), norm->square_sums(),
                   "low_rank/x_q8", norm->eps};
  }
  const TensorView x = op.rows_x ? op.rows_x->f32 : TensorView{};
  DP_CHECK(check_view(x, uint64_t{ctx.max_rows} * op.k * sizeof(float), "x of low_rank_down"));
  return LoadedX{x, unused_binding(ctx), unused_binding(ctx),
                 op.k % 4 == 0 ? "low_rank/x_vec4" : "low_rank/x_f32"};
}

// Adds the consts of low_rank/adapted and of the fragment with `low_of`.
void add_b(Launch& launch, const LowRankUp& op) {
  const auto end = [&](size_t i) { return i + 1 < op.ends.size() ? op.ends[i] : op.n; };
  launch.consts.push_back(u32_const("COLUMNS", op.n));
  launch.consts.push_back(u32_const("RANK4", op.rank / 4));
  launch.consts.push_back(u32_const("MATRICES", op.ends.size()));
  launch.consts.push_back(u32_const("END0", end(0)));
  launch.consts.push_back(u32_const("END1", end(1)));
  launch.consts.push_back(u32_const("END2", end(2)));
  launch.consts.push_back(bool_const("AFFINE", op.is_affine));
}

Result<void> check(const Context& ctx, const LowRankUp& op) {
  if (op.n == 0 || op.rank == 0 || op.rank % kRankStep != 0 || op.ends.empty() ||
      op.ends.size() > kMostAdaptedMatrices || op.y_stride < op.n) {
    return fail(ErrorKind::kInternal, "low_rank_up of rank %u from %zu matrices to %u of %u columns.",
                op.rank, op.ends.size(), op.n, op.y_stride);
  }
  const uint64_t bytes_of_b = uint64_t{op.slots} * LowRankUp::b_vec4s(op.rank, op.is_affine) * op.n * 16;
  DP_CHECK(check_view(op.b, bytes_of_b, "b of low_rank_up"));
  DP_CHECK(check_view(op.y, (uint64_t{ctx.max_rows - 1} * op.y_stride + op.n) * sizeof(float),
                      "y of low_rank_up"));
  const uint64_t low_rows =
      op.tokens.valid() ? uint64_t{op.slots} * op.vocab_size : ctx.max_rows * op.ends.size();
  DP_CHECK(check_view(op.low, low_rows * op.rank * sizeof(float), "low of low_rank_up"));
  if (op.tokens.valid()) {
    DP_CHECK(check_view(op.tokens, uint64_t{ctx.max_rows} * sizeof(uint32_t), "tokens of low_rank_up"));
  }
  return check_rows(ctx, op.adapters);
}

}  // namespace

Result<void> record(Context& ctx, const LowRankDown& op) {
  if (op.k == 0 || op.width == 0 || op.width % kRankStep != 0 ||
      (op.rows_x == nullptr) == (op.deferred_x == nullptr)) {
    return fail(ErrorKind::kInternal, "low_rank_down of rows of %u values to %u.", op.k, op.width);
  }
  const uint64_t padded = LowRankDown::padded_k(op.k);
  DP_CHECK(check_view(op.a, op.slots * op.width * padded * sizeof(float), "a of low_rank_down"));
  DP_CHECK(check_view(op.low, uint64_t{ctx.max_rows} * op.width * sizeof(float), "low of low_rank_down"));
  DP_CHECK(check_rows(ctx, op.adapters));
  DP_TRY(const LoadedX x, loaded_x(ctx, op));
  DP_TRY(const auto row, select("low_rank_down", low_rank_down_variants(), LowRankShape{ctx.max_rows},
                                format_text("%u to %u", op.k, op.width), ctx));
  Launch launch{.variant = row->name, .entry = row->entry, .layout = row->layout};
  launch.consts = {u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), padded / 4, kMostDown)),
                   u32_const("K", op.k), u32_const("WIDTH", op.width),
                   bool_const("DEFERRED", op.deferred_x != nullptr), f32_const("EPS", x.eps)};
  launch.substitutions.emplace_back("low_rank/x_f32", x.fragment);
  add_rows(launch, ctx, op.adapters);
  launch.subgroups = (row->needs & kNeedSubgroups) != 0;
  launch.bindings = {op.adapters.state, op.adapters.adapters, x.x, x.scales, x.square_sums, op.a, op.low};
  launch.grid = {.x = row->is_tile ? op.width / 4 : op.width,
                 .rows_axis = 1,
                 .rows_per_group = row->is_tile ? kLowRankTileRows : 1};
  launch.bytes = op.width * padded * sizeof(float);
  launch.operations = 2 * op.width * padded;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const LowRankUp& op) {
  DP_CHECK(check(ctx, op));
  DP_TRY(const auto row, select("low_rank_up", low_rank_up_variants(), LowRankShape{ctx.max_rows},
                                format_text("%u to %u", op.rank, op.n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.n, kMostUp);
  Launch launch{.variant = row->name, .entry = row->entry, .layout = row->layout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("Y_STRIDE", op.y_stride),
                   u32_const("VOCAB", std::max(1u, op.vocab_size))};
  add_b(launch, op);
  if (op.tokens.valid())
    launch.substitutions.emplace_back("low_rank/low_of_product", "low_rank/low_of_token");
  add_rows(launch, ctx, op.adapters);
  launch.bindings = {op.adapters.state,
                     op.adapters.adapters,
                     op.low,
                     op.tokens.valid() ? op.tokens : unused_binding(ctx),
                     op.b,
                     op.y};
  launch.grid = {.x = (op.n + workgroup - 1) / workgroup,
                 .rows_axis = 1,
                 .rows_per_group = row->is_tile ? kLowRankTileRows : 1};
  launch.bytes = uint64_t{LowRankUp::b_vec4s(op.rank, op.is_affine)} * op.n * 16 + 8ull * op.n;
  launch.operations = uint64_t{2} * op.rank * op.n;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const LowRankGate& op) {
  const LowRankUp& up = op.up;
  DP_CHECK(check(ctx, up));
  const uint32_t n = up.n / 2;
  if (up.n % 2 != 0 || up.y_stride != up.n || up.tokens.valid() || op.activate == ActivationFn::kNone) {
    return fail(ErrorKind::kInternal, "low_rank_gate of %u gates and ups in rows of %u.", up.n, up.y_stride);
  }
  if (op.y.f32.valid() || !op.y.f16.valid()) {
    DP_CHECK(check_view(op.y.f32, uint64_t{ctx.max_rows} * n * sizeof(float), "y of low_rank_gate"));
  }
  const bool has_q8 = op.y.q8.valid(), has_f16 = op.y.f16.valid();
  if ((has_q8 && n % 32 != 0) || (has_f16 && n % 16 != 0)) {
    return fail(ErrorKind::kInternal, "Row length (%u) of low_rank_gate is not whole blocks.", n);
  }
  if (has_q8) DP_CHECK(check_view(op.y.q8, q8_bytes(ctx.max_rows, n), "q8 of low_rank_gate"));
  if (has_f16) DP_CHECK(check_view(op.y.f16, f16_bytes(ctx.max_rows, n), "f16 of low_rank_gate"));
  DP_TRY(const auto row, select("low_rank_gate", low_rank_gate_variants(), op,
                                format_text("%s %u", activation_name(op.activate), n), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), (n + 3) / 4, kMostUp);
  Launch launch{
      .variant = row->name, .entry = "low_rank/low_rank_gate", .layout = wgsl::low_rank_gate::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup),
                   u32_const("N", n),
                   u32_const("ACTIVATE", static_cast<uint32_t>(op.activate)),
                   bool_const("HAS_Q8", has_q8),
                   bool_const("HAS_F16", has_f16),
                   bool_const("HAS_F32", op.y.f32.valid()),
                   u32_const("F16_COLUMNS", n),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, n) / 4)};
  add_b(launch, up);
  add_rows(launch, ctx, up.adapters);
  launch.bindings = {up.adapters.state,
                     up.adapters.adapters,
                     up.low,
                     up.b,
                     up.y,
                     op.y.f32.valid() ? op.y.f32 : unused_binding(ctx),
                     has_q8 ? op.y.q8 : unused_binding(ctx),
                     has_f16 ? op.y.f16 : unused_binding(ctx)};
  launch.grid = {.x = (n + workgroup * 4 - 1) / (workgroup * 4), .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{LowRankUp::b_vec4s(up.rank, up.is_affine)} * up.n * 16 + 12ull * n;
  launch.operations = uint64_t{2} * up.rank * up.n;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
