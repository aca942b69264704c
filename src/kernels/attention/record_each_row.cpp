// Attention of each row of q on its own: decode, a few rows, rows of several sequences. One dispatch, or with splits of
// the keys two. Read next: attention_decode_core.wgsl, attention_decode_portable.wgsl.
#include <algorithm>
#include <bit>

#include "kernels/attention/attention_combine.wgsl.h"
#include "kernels/attention/attention_decode_portable.wgsl.h"
#include "kernels/attention/attention_decode_rope.wgsl.h"
#include "kernels/attention/attention_decode_stored.wgsl.h"
#include "kernels/attention/recording.h"
#include "kernels/linear/linear.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kCpuTile = 64;      // keys of a tile of attention_decode.cpu
constexpr uint32_t kCombineParts = 4;  // invocations that share four columns of a combine, at most

// The fragments that put a result: value by value, and four at a time in kernels with subgroup operations.
struct OutputForm {
  std::string_view values, quads;
};
constexpr OutputForm kPutY = {"attention/attention_output_y", "attention/attention_quad_y"};
constexpr OutputForm kPutQ8 = {"attention/attention_output_y_q8", "attention/attention_quad_y_q8"};
// Only for kernels with subgroup operations.
constexpr OutputForm kPutF16 = {"attention/attention_output_y", "attention/attention_quad_y_f16"};
constexpr OutputForm kPutPartial = {"attention/attention_output_partial", "attention/attention_quad_partial"};

// other: y in 8 bits or f16, where the form puts it.
struct Output {
  OutputForm form;
  TensorView result;
  TensorView other;
};

void choose_output(const Output& output, Launch& launch) {
  launch.substitutions.emplace_back(kPutY.values, output.form.values);
  launch.substitutions.emplace_back(kPutY.quads, output.form.quads);
}

// Constants and grid of the kernels that take each row of q on its own.
gpu::WgslConst f16_columns(const Attention& op) { return u32_const("F16_COLUMNS", row_floats(op)); }
gpu::WgslConst q8_plane1(const Context& ctx, const Attention& op) {
  return u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, static_cast<uint32_t>(row_floats(op))) / 4);
}
gpu::WgslConst all_heads(const Context& ctx, const Attention& op) {
  return u32_const("ALL_HEADS", uint64_t{single_rows(ctx, op).most} * op.n_heads);
}
// The rows are z, or y where y is 0.
gpu::Grid grid_of_rows(const Context& ctx, const Attention& op, uint32_t x, uint32_t y) {
  const SingleRows rows = single_rows(ctx, op);
  const uint32_t axis = y == 0 ? 1 : 2;
  gpu::Grid grid{.x = x, .y = std::max(y, 1u)};
  if (rows.beside_pieces) {
    (axis == 1 ? grid.y : grid.z) = rows.most;
    return grid;
  }
  grid.rows_axis = axis;
  grid.rows_per_group = ctx.max_rows == 1 ? 0u : 1u;
  return grid;
}

Result<void> record_combine(Context& ctx, const Attention& op, const SplitPartials& parts,
                            std::string_view variant, const Rows& y) {
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t quads = op.cache.padded_head_dim() / 4;
  const uint32_t sharing = std::min(caps.max_invocations, caps.max_workgroup_size_x) / quads;
  const std::string name = std::string(variant) + ".combine";
  Launch launch{
      .variant = name, .entry = "attention/attention_combine", .layout = wgsl::attention_combine::kLayout};
  add_shared(ctx, op, launch);
  for (const gpu::WgslConst& value :
       {u32_const("SPLITS", parts.splits), u32_const("KEYS_PER_SPLIT", parts.keys_per_split),
        u32_const("PARTS", std::clamp(sharing, 1u, std::min(kCombineParts, parts.splits))),
        bool_const("HAS_Q8", y.q8.valid()), bool_const("HAS_F16", y.f16.valid()), f16_columns(op),
        q8_plane1(ctx, op), all_heads(ctx, op)}) {
    launch.consts.push_back(value);
  }
  const TensorView unused = unused_binding(ctx);
  launch.bindings = {ctx.state, parts.partials, op.sinks.valid() ? op.sinks : op.q,
                     y.f32.valid() ? y.f32 : unused,
                     y.q8.valid()    ? y.q8
                     : y.f16.valid() ? y.f16
                                     : unused};
  launch.grid = grid_of_rows(ctx, op, op.n_heads, 0);
  launch.bytes = row_floats(op) * sizeof(float) * (parts.splits + 1);
  launch.operations = 2 * row_floats(op) * parts.splits;
  return dispatch(ctx, launch);
}

}  // namespace

SingleRows single_rows(const Context& ctx, const Attention& op) {
  const bool beside_pieces = op.single_rows != 0 && op.single_rows < ctx.max_rows && !op.each_row;
  return {.most = beside_pieces ? op.single_rows : ctx.max_rows, .beside_pieces = beside_pieces};
}

AttentionDecodeRow tuned_row(const Policy& policy, Choice& choice, const AttentionDecodeRow& row) {
  AttentionDecodeRow tuned = row;
  if (row.kernel != DecodeKernel::kSubgroup) return tuned;
  tuned.keys_at_once = tunable(policy, choice, "keys_at_once", row.keys_at_once, {2, 4, 8});
  tuned.workgroup = tunable(policy, choice, "invocations", row.workgroup, {64, 128, 256, 512});
  if (row.splits && row.heads != 0) tuned.heads = tunable(policy, choice, "heads", row.heads, {1, 2, 4});
  if (row.reader_reduces) {
    tuned.keys_per_split =
        tunable(policy, choice, "keys_per_split", row.keys_per_split, {16, 32, 64, 128, 256});
  }
  return tuned;
}

bool writes_f16_alone(const Attention& op, const AttentionDecodeRow& row, const Rows& y) {
  return y.f16.valid() && !y.f32.valid() && !y.q8.valid() && row.kernel == DecodeKernel::kSubgroup &&
         op.cache.head_dim % 16 == 0;
}

SplitPartials partials_of(const Context& ctx, const Attention& op, const DecodeSizes& sizes) {
  return {.partials = {},
          .splits = sizes.splits,
          .keys_per_split = sizes.keys_per_split,
          .n_heads = single_rows(ctx, op).most * op.n_heads,
          .head_dim = op.cache.head_dim,
          .ctx_len = op.cache.ctx_len,
          .window = op.window};
}

Result<void> record_each_row(Context& ctx, const Attention& given, Choice& choice,
                             const AttentionDecodeRow& chosen, const AttentionOutput& y_of_reader) {
  AttentionDecodeRow tuned = tuned_row(ctx.policy, choice, chosen);
  // Rows of several sequences fill a device by themselves. As many splits as for a few rows would only give more
  // partial results.
  constexpr uint32_t kRowsOfSplits = 8;  // of one sequence: a plan's rows are not all there
  const uint32_t rows = given.single_rows != 0 ? single_rows(ctx, given).most : ctx.max_rows / kRowsOfSplits;
  tuned.rows = std::max(tuned.rows, rows);
  const AttentionDecodeRow* row = &tuned;
  if (given.rope && !row->rope) DP_CHECK(record(ctx, *given.rope));
  Attention op = given;
  if (row->kernel == DecodeKernel::kWorkgroup) {
    DP_TRY(op, unpacked(ctx, given, true));
  }
  const DecodeSizes sizes = decode_sizes(*row, op, ctx.plan.caps());
  const bool is_split = sizes.splits > 1;
  const auto* left = std::get_if<SplitPartials>(&y_of_reader);
  const Rows y = left ? Rows{} : std::get<Rows>(y_of_reader);
  const bool q8_inside = y.q8.valid() && op.cache.head_dim % 32 == 0;
  const bool f16_inside = writes_f16_alone(op, *row, y);
  SplitPartials parts = left ? *left : partials_of(ctx, op, sizes);
  if (is_split && !left) parts.partials = ctx.plan.scratch("attention partials", parts.bytes());
  const Output output = is_split ? Output{kPutPartial, parts.partials, {}}
                        : f16_inside
                            ? Output{kPutF16, unused_binding(ctx), y.f16}
                            : Output{q8_inside ? kPutQ8 : kPutY, y.f32, q8_inside ? y.q8 : TensorView{}};

  const bool subgroup = row->kernel == DecodeKernel::kSubgroup;
  Launch launch{.variant = row->name};
  launch.entry = subgroup ? "attention/attention_decode_subgroup" : "attention/attention_decode_portable";
  launch.layout = subgroup ? std::span<const gpu::BindKind>(wgsl::attention_decode_stored::kLayout)
                           : wgsl::attention_decode_portable::kLayout;
  launch.subgroups = subgroup;
  add_shared(ctx, op, launch);
  for (const gpu::WgslConst& value :
       {u32_const("HEADS", sizes.heads), u32_const("HEAD_CHUNKS", sizes.head_chunks),
        u32_const("SPLITS", sizes.splits), u32_const("KEYS_PER_SPLIT", sizes.keys_per_split),
        u32_const("WORKGROUP", sizes.workgroup), u32_const("VECTORS", sizes.vectors),
        u32_const("INVOCATIONS_PER_KEY", sizes.invocations_per_key),
        u32_const(subgroup ? "KEYS" : "KEYS_EACH", sizes.keys), f16_columns(op), q8_plane1(ctx, op),
        all_heads(ctx, op)}) {
    launch.consts.push_back(value);
  }
  if (subgroup) {
    launch.consts.push_back(u32_const("SUBGROUP", sizes.subgroup));
  } else {
    launch.consts.push_back(u32_const("HEADS_POW2", std::bit_ceil(sizes.heads)));
    launch.consts.push_back(u32_const("KEY_GROUPS", sizes.workgroup / sizes.invocations_per_key));
    launch.consts.push_back(u32_const("TILE", std::max(sizes.workgroup, kCpuTile)));
  }
  choose_output(output, launch);
  if (row->rope) {
    const RopeKv& rope = *op.rope;
    launch.entry = "attention/attention_decode_rope";
    launch.layout = wgsl::attention_decode_rope::kLayout;
    for (const gpu::WgslConst& value :
         {u32_const("QKV_STRIDE", rope.row_stride()), u32_const("QKV_COLUMN", rope.column),
          bool_const("HAS_GATE", op.gate_column.has_value()),
          u32_const("GATE_COLUMN", op.gate_column.value_or(0)), u32_const("ROTARY_DIM", rope.rotary_dim),
          bool_const("INTERLEAVED", rope.interleaved), f32_const("ATTENTION_FACTOR", rope.attention_factor),
          bool_const("HAS_NORMS", rope.norms.valid()), bool_const("NORMS_OF_ROWS", rope.norms_of_rows),
          f32_const("NORM_EPS", rope.norm_eps)}) {
      launch.consts.push_back(value);
    }
    add_places(launch, rope);
    if (ctx.tables.sequences == 0) launch.consts.push_back(u32_const("N_KV_HEADS", op.cache.n_kv_heads));
    launch.bindings = {ctx.state,
                       rope.qkv,
                       rope.rotary_dim > 0 ? rope.table : rope.qkv,
                       op.cache.k,
                       op.cache.v,
                       rope.norms.valid() ? rope.norms
                       : op.sinks.valid() ? op.sinks
                                          : rope.qkv,
                       output.result,
                       output.other.valid() ? output.other : unused_binding(ctx)};
  } else {
    launch.bindings = {ctx.state,
                       op.q,
                       op.cache.k,
                       op.cache.v,
                       op.sinks.valid() ? op.sinks : op.q,
                       output.result,
                       output.other.valid() ? output.other : unused_binding(ctx)};
  }
  launch.grid = grid_of_rows(ctx, op, op.cache.n_kv_heads * sizes.head_chunks, sizes.splits);
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  if (left) return {};
  if (is_split) {
    DP_CHECK(record_combine(
        ctx, op, parts, row->name,
        {.f32 = y.f32, .q8 = q8_inside ? y.q8 : TensorView{}, .f16 = f16_inside ? y.f16 : TensorView{}}));
  }
  return record_other_forms(ctx, op, y, q8_inside, f16_inside);
}

}  // namespace doppler::kernels
