// Checks and records attention: one or two dispatches for a decode step or a few rows, one for a prefill chunk.
// Read next: variants.h (rows and sizes), attention_decode_portable.wgsl, attention_prefill.wgsl.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/attention/attention_combine.wgsl.h"
#include "kernels/attention/attention_decode_portable.wgsl.h"
#include "kernels/attention/attention_decode_rope.wgsl.h"
#include "kernels/attention/attention_decode_subgroup.wgsl.h"
#include "kernels/attention/attention_prefill.wgsl.h"
#include "kernels/attention/attention_prefill_matrix.wgsl.h"
#include "kernels/attention/variants.h"
#include "kernels/common/dispatch.h"
#include "kernels/linear/linear.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostHeadDim = 512;
constexpr float kLog2E = 1.44269504f;
constexpr uint32_t kCpuTile = 64;      // keys of a tile of attention_decode.cpu
constexpr uint32_t kCombineParts = 4;  // invocations that share four columns of a combine, at most
constexpr uint32_t kMostValueKeys = 32;

uint64_t row_floats(const Attention& op) { return static_cast<uint64_t>(op.n_heads) * op.cache.head_dim; }

Result<void> check_shape(const Attention& op) {
  const CacheView& cache = op.cache;
  if (cache.n_kv_heads == 0 || op.n_heads == 0 || op.n_heads % cache.n_kv_heads != 0) {
    return fail(ErrorKind::kInvalidInput, "Query heads (%u) are not a multiple of kv heads (%u).", op.n_heads,
                cache.n_kv_heads);
  }
  if (cache.head_dim == 0 || cache.head_dim > kMostHeadDim) {
    return fail(ErrorKind::kUnsupported, "Head dimension (%u) is not between 1 and %u.", cache.head_dim,
                kMostHeadDim);
  }
  if (cache.ctx_len == 0) return fail(ErrorKind::kInvalidInput, "A cache of 0 positions.");
  if (!(op.scale > 0) || !std::isfinite(op.scale) || !(op.softcap >= 0) || !std::isfinite(op.softcap)) {
    return fail(ErrorKind::kInvalidInput, "Scale (%g) is not positive or softcap (%g) negative.",
                static_cast<double>(op.scale), static_cast<double>(op.softcap));
  }
  return {};
}

Result<void> check_cache(const Context& ctx, const CacheView& cache) {
  const uint64_t limit = ctx.plan.caps().max_binding_bytes;
  if (cache.bytes() > limit) {
    const uint64_t fits = limit / (cache.bytes() / cache.ctx_len);
    return fail(ErrorKind::kUnsupported,
                "The keys of one layer take %s at a context of %u positions; this device binds up to %s: a "
                "context of %llu fits.",
                format_bytes(cache.bytes()).c_str(), cache.ctx_len, format_bytes(limit).c_str(),
                static_cast<unsigned long long>(fits));
  }
  DP_CHECK(check_view(cache.k, cache.bytes(), "k of attention"));
  return check_view(cache.v, cache.bytes(), "v of attention");
}

Result<void> check_inputs(const Context& ctx, const Attention& op) {
  if (op.rope && op.rope->q_out != op.q)
    return fail(ErrorKind::kInternal, "q of attention is not what rope writes.");
  if (op.rope && op.rope->norms.valid())
    DP_CHECK(check_view(op.rope->norms, op.cache.head_dim * 8ull, "norms of attention"));
  DP_CHECK(check_view(op.q, row_floats(op) * sizeof(float) * ctx.max_rows, "q of attention"));
  if (op.sinks.valid()) DP_CHECK(check_view(op.sinks, op.n_heads * sizeof(float), "sinks of attention"));
  return {};
}

Result<void> check_rows(const Context& ctx, const Attention& op, const Rows& y) {
  const auto k = static_cast<uint32_t>(row_floats(op));
  if (y.f32.valid() || (!y.q8.valid() && !y.f16.valid())) {
    DP_CHECK(check_view(y.f32, row_floats(op) * sizeof(float) * ctx.max_rows, "y of attention"));
  }
  if (y.q8.valid()) {
    if (k % 32 != 0) {
      return fail(ErrorKind::kInternal, "Row length (%u) of attention's q8 output is not a multiple of 32.",
                  k);
    }
    DP_CHECK(check_view(y.q8, q8_bytes(ctx.max_rows, k), "q8 of attention"));
  }
  if (y.f16.valid()) DP_CHECK(check_view(y.f16, f16_bytes(ctx.max_rows, k), "f16 of attention"));
  return {};
}

std::string shape_text(const Attention& op) {
  return format_text("%u heads on %u, head_dim %u, %s cache of %u", op.n_heads, op.cache.n_kv_heads,
                     op.cache.head_dim, op.cache.format == CacheFormat::kF16 ? "f16" : "f32",
                     visible_keys(op));
}

std::vector<gpu::WgslConst> shared_consts(const Attention& op) {
  const float scale = op.softcap > 0 ? op.scale / op.softcap : op.scale * kLog2E;
  return {u32_const("HEAD_DIM", op.cache.head_dim),
          u32_const("D8", op.cache.padded_head_dim() / 8),
          u32_const("N_HEADS", op.n_heads),
          u32_const("GROUP", op.n_heads / op.cache.n_kv_heads),
          u32_const("CTX_LEN", op.cache.ctx_len),
          u32_const("WINDOW", op.window == 0 ? UINT32_MAX : op.window),
          f32_const("Q_SCALE", scale),
          f32_const("SOFTCAP", op.softcap),
          bool_const("HAS_SOFTCAP", op.softcap > 0),
          bool_const("HAS_SINKS", op.sinks.valid())};
}

// What a step costs depends on the position, which a plan does not know: the plan says what it costs with a
// full cache (or window), the most it can.
void add_costs(const Attention& op, Launch& launch) {
  const uint64_t keys = visible_keys(op);
  launch.bytes = 2 * row_floats(op) * sizeof(float);
  launch.fixed_bytes = 2 * op.cache.bytes() / op.cache.ctx_len * keys;
  launch.operations = 4 * row_floats(op) * keys;
  launch.keys = visible_keys(op);
}

void choose_fragments(const Attention& op, Launch& launch) {
  if (op.cache.format == CacheFormat::kF32) {
    launch.substitutions.emplace_back("attention/attention_cache_f16", "attention/attention_cache_f32");
    launch.substitutions.emplace_back("attention/attention_cache_f16_store",
                                      "attention/attention_cache_f32_store");
  }
}

// The fragments that put a result: value by value, and four at a time in kernels with subgroup operations.
struct OutputForm {
  std::string_view values, quads;
};
constexpr OutputForm kPutY = {"attention/attention_output_y", "attention/attention_quad_y"};
constexpr OutputForm kPutQ8 = {"attention/attention_output_y_q8", "attention/attention_quad_y_q8"};
constexpr OutputForm kPutPartial = {"attention/attention_output_partial", "attention/attention_quad_partial"};

struct Output {
  OutputForm form;
  TensorView result;
  TensorView q8;
};

void choose_output(const Output& output, Launch& launch) {
  launch.substitutions.emplace_back(kPutY.values, output.form.values);
  launch.substitutions.emplace_back(kPutY.quads, output.form.quads);
}

// Constants and grid of the kernels that take each row of q on its own.
gpu::WgslConst q8_plane1(const Context& ctx, const Attention& op) {
  return u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, static_cast<uint32_t>(row_floats(op))) / 4);
}
gpu::WgslConst all_heads(const Context& ctx, const Attention& op) {
  return u32_const("ALL_HEADS", uint64_t{ctx.max_rows} * op.n_heads);
}
gpu::Grid grid_of_rows(const Context& ctx, uint32_t x, uint32_t y, uint32_t axis) {
  return {.x = x, .y = y, .rows_axis = axis, .rows_per_group = ctx.max_rows == 1 ? 0u : 1u};
}

Result<void> record_combine(Context& ctx, const Attention& op, const SplitPartials& parts,
                            std::string_view variant, const Rows& y) {
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t quads = op.cache.padded_head_dim() / 4;
  const uint32_t sharing = std::min(caps.max_invocations, caps.max_workgroup_size_x) / quads;
  const std::string name = std::string(variant) + ".combine";
  Launch launch{
      .variant = name, .entry = "attention/attention_combine", .layout = wgsl::attention_combine::kLayout};
  launch.consts = shared_consts(op);
  for (const gpu::WgslConst& value :
       {u32_const("SPLITS", parts.splits), u32_const("KEYS_PER_SPLIT", parts.keys_per_split),
        u32_const("PARTS", std::clamp(sharing, 1u, std::min(kCombineParts, parts.splits))),
        bool_const("HAS_Q8", y.q8.valid()), q8_plane1(ctx, op), all_heads(ctx, op)}) {
    launch.consts.push_back(value);
  }
  launch.bindings = {ctx.state, parts.partials, op.sinks.valid() ? op.sinks : op.q, y.f32,
                     y.q8.valid() ? y.q8 : unused_binding(ctx)};
  launch.grid = grid_of_rows(ctx, op.n_heads, 1, 1);
  launch.bytes = row_floats(op) * sizeof(float) * (parts.splits + 1);
  launch.operations = 2 * row_floats(op) * parts.splits;
  return dispatch(ctx, launch);
}

// The forms of y that the kernel did not write itself.
Result<void> record_other_forms(Context& ctx, const Attention& op, const Rows& y, bool has_q8, bool has_f16) {
  const auto k = static_cast<uint32_t>(row_floats(op));
  if (y.q8.valid() && !has_q8) DP_CHECK(record(ctx, QuantizeQ8{.x = y.f32, .q8 = y.q8, .k = k}));
  if (y.f16.valid() && !has_f16) DP_CHECK(record(ctx, FragmentF16{.x = y.f32, .f16 = y.f16, .k = k}));
  return {};
}

// The row with the constants that tuning found better for this device and shape.
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

SplitPartials partials_of(const Context& ctx, const Attention& op, const DecodeSizes& sizes) {
  return {.partials = {},
          .splits = sizes.splits,
          .keys_per_split = sizes.keys_per_split,
          .n_heads = ctx.max_rows * op.n_heads,
          .head_dim = op.cache.head_dim,
          .ctx_len = op.cache.ctx_len,
          .window = op.window};
}

// Of each row of q on its own. y_of_reader: what the reader gets, SplitPartials where the row leaves them to it.
Result<void> record_each_row(Context& ctx, const Attention& op, Choice& choice,
                             const AttentionDecodeRow& chosen, const AttentionOutput& y_of_reader) {
  const AttentionDecodeRow tuned = tuned_row(ctx.policy, choice, chosen);
  const AttentionDecodeRow* row = &tuned;
  if (op.rope && !row->rope) DP_CHECK(record(ctx, *op.rope));
  const DecodeSizes sizes = decode_sizes(*row, op, ctx.plan.caps());
  const bool is_split = sizes.splits > 1;
  const auto* left = std::get_if<SplitPartials>(&y_of_reader);
  const Rows y = left ? Rows{} : std::get<Rows>(y_of_reader);
  const bool q8_inside = y.q8.valid() && op.cache.head_dim % 32 == 0;
  SplitPartials parts = left ? *left : partials_of(ctx, op, sizes);
  if (is_split && !left) parts.partials = ctx.plan.scratch("attention partials", parts.bytes());
  const Output output = is_split ? Output{kPutPartial, parts.partials, {}}
                                 : Output{q8_inside ? kPutQ8 : kPutY, y.f32, q8_inside ? y.q8 : TensorView{}};

  const bool subgroup = row->kernel == DecodeKernel::kSubgroup;
  Launch launch{.variant = row->name};
  launch.entry = subgroup ? "attention/attention_decode_subgroup" : "attention/attention_decode_portable";
  launch.layout = subgroup ? std::span<const gpu::BindKind>(wgsl::attention_decode_subgroup::kLayout)
                           : wgsl::attention_decode_portable::kLayout;
  launch.subgroups = subgroup;
  launch.consts = shared_consts(op);
  for (const gpu::WgslConst& value :
       {u32_const("HEADS", sizes.heads), u32_const("HEAD_CHUNKS", sizes.head_chunks),
        u32_const("SPLITS", sizes.splits), u32_const("KEYS_PER_SPLIT", sizes.keys_per_split),
        u32_const("WORKGROUP", sizes.workgroup), u32_const("VECTORS", sizes.vectors),
        u32_const("INVOCATIONS_PER_KEY", sizes.invocations_per_key),
        u32_const(subgroup ? "KEYS" : "KEYS_EACH", sizes.keys), q8_plane1(ctx, op), all_heads(ctx, op)}) {
    launch.consts.push_back(value);
  }
  if (subgroup) {
    launch.consts.push_back(u32_const("SUBGROUP", sizes.subgroup));
  } else {
    launch.consts.push_back(u32_const("HEADS_POW2", std::bit_ceil(sizes.heads)));
    launch.consts.push_back(u32_const("KEY_GROUPS", sizes.workgroup / sizes.invocations_per_key));
    launch.consts.push_back(u32_const("TILE", std::max(sizes.workgroup, kCpuTile)));
  }
  choose_fragments(op, launch);
  choose_output(output, launch);
  if (row->rope) {
    const RopeKv& rope = *op.rope;
    launch.entry = "attention/attention_decode_rope";
    launch.layout = wgsl::attention_decode_rope::kLayout;
    for (const gpu::WgslConst& value :
         {u32_const("N_KV_HEADS", op.cache.n_kv_heads), u32_const("ROTARY_DIM", rope.rotary_dim),
          bool_const("INTERLEAVED", rope.interleaved), f32_const("ATTENTION_FACTOR", rope.attention_factor),
          bool_const("HAS_NORMS", rope.norms.valid()), f32_const("NORM_EPS", rope.norm_eps)}) {
      launch.consts.push_back(value);
    }
    launch.bindings = {ctx.state,
                       rope.qkv,
                       rope.rotary_dim > 0 ? rope.table : rope.qkv,
                       op.cache.k,
                       op.cache.v,
                       rope.norms.valid() ? rope.norms
                       : op.sinks.valid() ? op.sinks
                                          : rope.qkv,
                       output.result,
                       output.q8.valid() ? output.q8 : unused_binding(ctx)};
  } else {
    launch.bindings = {ctx.state,
                       op.q,
                       op.cache.k,
                       op.cache.v,
                       op.sinks.valid() ? op.sinks : op.q,
                       output.result,
                       output.q8.valid() ? output.q8 : unused_binding(ctx)};
  }
  launch.grid = grid_of_rows(ctx, op.cache.n_kv_heads * sizes.head_chunks, sizes.splits, 2);
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  if (left) return {};
  if (is_split) {
    DP_CHECK(
        record_combine(ctx, op, parts, row->name, {.f32 = y.f32, .q8 = q8_inside ? y.q8 : TensorView{}}));
  }
  return record_other_forms(ctx, op, y, q8_inside, false);
}

Result<void> record_matrix(Context& ctx, const Attention& op, const AttentionPrefillRow& row, const Rows& y) {
  Launch launch{.variant = row.name,
                .entry = "attention/attention_prefill_matrix",
                .layout = wgsl::attention_prefill_matrix::kLayout};
  launch.matrix = true;
  launch.consts = shared_consts(op);
  for (const gpu::WgslConst& value :
       {u32_const("SUBGROUPS", row.rows / 16), bool_const("HAS_F16", y.f16.valid()),
        bool_const("HAS_F32", y.f32.valid()), u32_const("F16_COLUMNS", row_floats(op))}) {
    launch.consts.push_back(value);
  }
  launch.bindings = {ctx.state,
                     op.q,
                     op.cache.k,
                     op.cache.v,
                     op.sinks.valid() ? op.sinks : op.q,
                     y.f32.valid() ? y.f32 : unused_binding(ctx),
                     y.f16.valid() ? y.f16 : unused_binding(ctx)};
  launch.grid = {.x = 1, .y = op.n_heads, .rows_axis = 0, .rows_per_group = row.rows};
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  return record_other_forms(ctx, op, y, false, true);
}

Result<void> record_tiles(Context& ctx, const Attention& op, const AttentionPrefillRow& row, const Rows& y) {
  const uint32_t vec4s = op.cache.padded_head_dim() / 4;
  Launch launch{.variant = row.name,
                .entry = "attention/attention_prefill",
                .layout = wgsl::attention_prefill::kLayout};
  launch.consts = shared_consts(op);
  for (const gpu::WgslConst& value :
       {u32_const("WORKGROUP", row.workgroup), u32_const("ROWS", row.rows), u32_const("KEYS", row.keys),
        u32_const("CHUNK", row.chunk),
        u32_const("VALUE_KEYS", std::clamp(row.value_vec4s / vec4s, 1u, kMostValueKeys))}) {
    launch.consts.push_back(value);
  }
  choose_fragments(op, launch);
  launch.bindings = {ctx.state, op.q, op.cache.k, op.cache.v, op.sinks.valid() ? op.sinks : op.q, y.f32};
  launch.grid = {.x = 1, .y = op.n_heads, .rows_axis = 0, .rows_per_group = row.rows};
  add_costs(op, launch);
  DP_CHECK(dispatch(ctx, launch));
  return record_other_forms(ctx, op, y, false, false);
}

// y with f32 where the row cannot write another form without it.
Rows complete_rows(Context& ctx, const Attention& op, const AttentionChoice& choice, Rows y) {
  const bool matrix = choice.prefill && choice.prefill->kernel == PrefillKernel::kMatrix;
  if (!y.f32.valid() && (!matrix || y.q8.valid())) {
    y.f32 = ctx.plan.scratch("attn_y", row_floats(op) * sizeof(float) * ctx.max_rows);
  }
  return y;
}

}  // namespace

Result<AttentionChoice> resolve_attention(const Context& ctx, const Attention& op) {
  DP_CHECK_WHILE(check_shape(op), "recording %s", ctx.op_label.c_str());
  DP_CHECK_WHILE(check_cache(ctx, op.cache), "recording %s", ctx.op_label.c_str());
  const gpu::Caps& caps = ctx.plan.caps();
  if (ctx.max_rows > 1) {
    const bool skinny = ctx.max_rows <= kMaxSkinnyRows;
    DP_TRY(Resolved<AttentionPrefillRow> resolved,
           resolve(skinny ? "attention_skinny" : "attention_prefill",
                   skinny ? attention_skinny_variants() : attention_prefill_variants(), op, shape_text(op),
                   caps, ctx.policy));
    if (resolved.row->kernel == PrefillKernel::kEachRow) {
      tuned_row(ctx.policy, resolved.choice, each_row(*resolved.row));  // the choice names its constants
    }
    return AttentionChoice{.choice = std::move(resolved.choice), .prefill = resolved.row};
  }
  DP_TRY(Resolved<AttentionDecodeRow> resolved,
         resolve("attention_decode", attention_decode_variants(), op, shape_text(op), caps, ctx.policy));
  AttentionChoice choice{
      .choice = std::move(resolved.choice), .decode = resolved.row, .rotates = resolved.row->rope};
  const DecodeSizes sizes = decode_sizes(tuned_row(ctx.policy, choice.choice, *resolved.row), op, caps);
  if (resolved.row->reader_reduces && sizes.splits > 1) choice.leaves = partials_of(ctx, op, sizes);
  return choice;
}

namespace {

Result<void> record_rows(Context& ctx, const AttentionChoice& choice, Choice& noted, const Attention& op,
                         const Rows& y) {
  if (choice.decode) return record_each_row(ctx, op, noted, *choice.decode, y);
  const AttentionPrefillRow& row = *choice.prefill;
  if (row.kernel == PrefillKernel::kEachRow) return record_each_row(ctx, op, noted, each_row(row), y);
  if (op.rope) DP_CHECK(record(ctx, *op.rope));
  return row.kernel == PrefillKernel::kMatrix ? record_matrix(ctx, op, row, y)
                                              : record_tiles(ctx, op, row, y);
}

}  // namespace

Result<void> record(Context& ctx, const AttentionChoice& choice, const Attention& op,
                    const AttentionOutput& y) {
  DP_CHECK_WHILE(check_inputs(ctx, op), "recording %s", ctx.op_label.c_str());
  const auto* left = std::get_if<SplitPartials>(&y);
  if ((left != nullptr) != choice.leaves.has_value()) {
    return fail(ErrorKind::kInternal,
                "%s: the attention variant leaves %s to its reader, and the caller expects %s.",
                ctx.op_label.c_str(), choice.leaves ? "splits" : "nothing", left ? "splits" : "rows");
  }
  note_choice(ctx, choice.choice);
  Choice noted = choice.choice;
  if (left) {
    DP_CHECK(check_view(left->partials, left->bytes(), "partials of attention"));
    return record_each_row(ctx, op, noted, *choice.decode, y);
  }
  const Rows& rows = std::get<Rows>(y);
  DP_CHECK_WHILE(check_rows(ctx, op, rows), "recording %s", ctx.op_label.c_str());
  return record_rows(ctx, choice, noted, op, complete_rows(ctx, op, choice, rows));
}

}  // namespace doppler::kernels
