// Attention of rows at consecutive positions, in tiles: a prefill chunk, or the pieces of prompts in a step.
// Read next: attention_prefill_matrix.wgsl, attention_prefill.wgsl.
#include <algorithm>
#include <cmath>

#include "kernels/attention/attention_prefill.wgsl.h"
#include "kernels/attention/attention_prefill_matrix.wgsl.h"
#include "kernels/attention/recording.h"
#include "kernels/common/tables.h"
#include "kernels/linear/linear.h"

namespace doppler::kernels {
namespace {

constexpr float kLog2E = 1.44269504f;
constexpr uint32_t kMostValueKeys = 32;

// z: the pieces of the step, if tables say which there are.
gpu::Grid grid_of_tiles(const Context& ctx, const Attention& op, uint32_t rows) {
  return {.x = 1,
          .y = op.n_heads,
          .z = ctx.tables.sequences == 0 ? 1u : kMaxPieces,
          .rows_axis = 0,
          .rows_per_group = rows};
}

// Spans or sinks, which share a binding.
TensorView extra_binding(const Attention& op, Launch& launch) {
  if (!op.spans.valid()) return op.sinks.valid() ? op.sinks : op.q;
  launch.substitutions.emplace_back("attention/attention_span", "attention/attention_span_rows");
  return op.spans;
}

}  // namespace

void add_shared(const Context& ctx, const Attention& op, Launch& launch) {
  const float scale = op.softcap > 0 ? op.scale / op.softcap : op.scale * kLog2E;
  launch.consts = {u32_const("HEAD_DIM", op.cache.head_dim),
                   u32_const("D8", op.cache.padded_head_dim() / 8),
                   u32_const("N_HEADS", op.n_heads),
                   u32_const("GROUP", op.n_heads / op.cache.n_kv_heads),
                   u32_const("CTX_LEN", op.cache.ctx_len),
                   u32_const("WINDOW", op.window == 0 ? UINT32_MAX : op.window),
                   f32_const("Q_SCALE", scale),
                   f32_const("SOFTCAP", op.softcap),
                   bool_const("HAS_SOFTCAP", op.softcap > 0),
                   bool_const("HAS_SINKS", op.sinks.valid())};
  add_tables(launch, ctx.tables, op.cache.in_windows, op.each_row);
  add_ring(launch, op.cache.ring_len);
  if (ctx.tables.sequences != 0) {
    launch.substitutions.emplace_back("attention/attention_one_run", "attention/attention_many_runs");
    launch.consts.push_back(u32_const("N_KV_HEADS", op.cache.n_kv_heads));
  }
  if (op.cache.format == CacheFormat::kF32) {
    launch.substitutions.emplace_back("attention/attention_cache_f16", "attention/attention_cache_f32");
    launch.substitutions.emplace_back("attention/attention_cache_f16_store",
                                      "attention/attention_cache_f32_store");
  }
  if (op.cache.format == CacheFormat::kQ8_0) {
    launch.substitutions.emplace_back("attention/attention_cache_f16", "attention/attention_cache_q8_0");
    launch.substitutions.emplace_back("attention/attention_decode_stored",
                                      "attention/attention_decode_stored_q8_0");
  }
}

// The cost of a step depends on the position, which a plan does not know: the plan gives the cost with a full cache (or
// window), the maximum.
void add_costs(const Attention& op, Launch& launch) {
  const uint64_t keys = visible_keys(op);
  launch.bytes = 2 * row_floats(op) * sizeof(float);
  launch.fixed_bytes = 2 * op.cache.bytes() / op.cache.positions() * keys;
  launch.operations = 4 * row_floats(op) * keys;
  launch.keys = visible_keys(op);
}

Result<void> record_other_forms(Context& ctx, const Attention& op, const Rows& y, bool has_q8, bool has_f16) {
  const auto k = static_cast<uint32_t>(row_floats(op));
  if (y.q8.valid() && !has_q8) DP_CHECK(record(ctx, QuantizeQ8{.x = y.f32, .q8 = y.q8, .k = k}));
  if (y.f16.valid() && !has_f16) DP_CHECK(record(ctx, FragmentF16{.x = y.f32, .f16 = y.f16, .k = k}));
  return {};
}

Result<void> record_matrix(Context& ctx, const Attention& given, const AttentionPrefillRow& row,
                           const Rows& y) {
  DP_TRY(const Attention op, unpacked(ctx, given, false));
  const MatrixSizes sizes = matrix_sizes(op, ctx.max_rows, ctx.plan.caps());
  Launch launch{.variant = row.name,
                .entry = "attention/attention_prefill_matrix",
                .layout = wgsl::attention_prefill_matrix::kLayout};
  launch.matrix = true;
  add_shared(ctx, op, launch);
  for (const gpu::WgslConst& value :
       {u32_const("SUBGROUPS", sizes.subgroups), u32_const("ROW_TILES", sizes.row_tiles),
        u32_const("AHEAD", op.ahead), bool_const("HAS_F16", y.f16.valid()),
        bool_const("HAS_F32", y.f32.valid()), u32_const("F16_COLUMNS", row_floats(op))}) {
    launch.consts.push_back(value);
  }
  launch.bindings = {ctx.state,
                     op.q,
                     op.cache.k,
                     op.cache.v,
                     extra_binding(op, launch),
                     y.f32.valid() ? y.f32 : unused_binding(ctx),
                     y.f16.valid() ? y.f16 : unused_binding(ctx)};
  launch.grid = grid_of_tiles(ctx, op, sizes.rows());
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  return record_other_forms(ctx, op, y, false, true);
}

Result<void> record_tiles(Context& ctx, const Attention& given, const AttentionPrefillRow& row,
                          const Rows& y) {
  DP_TRY(const Attention op, unpacked(ctx, given, false));
  const uint32_t vec4s = op.cache.padded_head_dim() / 4;
  Launch launch{.variant = row.name,
                .entry = "attention/attention_prefill",
                .layout = wgsl::attention_prefill::kLayout};
  add_shared(ctx, op, launch);
  for (const gpu::WgslConst& value :
       {u32_const("WORKGROUP", row.workgroup), u32_const("ROWS", row.rows), u32_const("KEYS", row.keys),
        u32_const("AHEAD", op.ahead), u32_const("CHUNK", row.chunk),
        u32_const("VALUE_KEYS", std::clamp(row.value_vec4s / vec4s, 1u, kMostValueKeys))}) {
    launch.consts.push_back(value);
  }
  launch.bindings = {ctx.state, op.q, op.cache.k, op.cache.v, extra_binding(op, launch), y.f32};
  launch.grid = grid_of_tiles(ctx, op, row.rows);
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  return record_other_forms(ctx, op, y, false, false);
}

}  // namespace doppler::kernels
