// Checks and records. One row in each table.
#include "kernels/heads/heads.h"

#include "kernels/common/dispatch.h"
#include "kernels/common/tables.h"
#include "kernels/heads/head_norm_portable.wgsl.h"
#include "kernels/heads/rotate_portable.wgsl.h"
#include "kernels/heads/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMostOfHead = 256;           // a norm of all columns is of thousands
constexpr uint32_t kHeadsMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<HeadNorm> kNormRows[] = {{"head_norm.portable"}};
constexpr Variant<Rotate> kRotateRows[] = {{"rotate.portable"}};

Result<void> check(const Context& ctx, const HeadColumns& heads) {
  const uint64_t end = heads.column + uint64_t{heads.n_heads} * heads.head_dim;
  if (heads.n_heads == 0 || heads.head_dim == 0 || end > heads.stride) {
    return fail(ErrorKind::kInternal, "%u heads of %u values from column %u on do not fit rows of %u.",
                heads.n_heads, heads.head_dim, heads.column, heads.stride);
  }
  return check_view(heads.x, ctx.max_rows * uint64_t{heads.stride} * sizeof(float), "rows of heads");
}

std::vector<gpu::WgslConst> place_consts(const HeadColumns& heads) {
  return {u32_const("STRIDE", heads.stride), u32_const("COLUMN", heads.column),
          u32_const("HEAD_DIM", heads.head_dim)};
}

std::string shape_text(const HeadColumns& heads) {
  return format_text("%ux%u", heads.n_heads, heads.head_dim);
}

}  // namespace

std::span<const Variant<HeadNorm>> head_norm_variants() { return kNormRows; }
std::span<const Variant<Rotate>> rotate_variants() { return kRotateRows; }

Result<void> record(Context& ctx, const HeadNorm& op) {
  const HeadColumns& heads = op.heads;
  DP_CHECK(check(ctx, heads));
  const bool has_weight = op.weight.valid();
  if (has_weight) DP_CHECK(check_view(op.weight, heads.head_dim * sizeof(float), "weight of head_norm"));
  DP_TRY(const auto row, select("head_norm", head_norm_variants(), op, shape_text(heads), ctx));
  Launch launch{
      .variant = row->name, .entry = "heads/head_norm_portable", .layout = wgsl::head_norm_portable::kLayout};
  launch.consts = place_consts(heads);
  launch.consts.push_back(
      u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), heads.head_dim, kMostOfHead)));
  launch.consts.push_back(f32_const("EPS", op.eps));
  launch.consts.push_back(bool_const("HAS_WEIGHT", has_weight));
  launch.bindings = {heads.x, has_weight ? op.weight : unused_binding(ctx)};
  launch.grid = {.x = heads.n_heads, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 2ull * heads.n_heads * heads.head_dim * sizeof(float);
  launch.operations = 4ull * heads.n_heads * heads.head_dim;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const Rotate& op) {
  const HeadColumns& heads = op.heads;
  DP_CHECK(check(ctx, heads));
  if (op.rotary_dim % 2 != 0 || op.rotary_dim > heads.head_dim || op.query_ctx_len == 0) {
    return fail(
        ErrorKind::kUnsupported,
        "Rotary dimension (%u) is odd or larger than head_dim (%u), or queries are scaled by positions / 0.",
        op.rotary_dim, heads.head_dim);
  }
  if (op.rotary_dim > 0) DP_CHECK(check_view(op.table, op.rotary_dim / 2 * 8ull, "table of rotate"));
  DP_TRY(const auto row, select("rotate", rotate_variants(), op, shape_text(heads), ctx));
  const uint32_t pairs = heads.n_heads * ((heads.head_dim + 1) / 2);
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), pairs, kHeadsMostInvocations);
  Launch launch{
      .variant = row->name, .entry = "heads/rotate_portable", .layout = wgsl::rotate_portable::kLayout};
  launch.consts = place_consts(heads);
  launch.consts.insert(
      launch.consts.end(),
      {u32_const("WORKGROUP", workgroup), u32_const("N_HEADS", heads.n_heads),
       u32_const("N_KV_HEADS", heads.n_heads), u32_const("CTX_LEN", 1),
       u32_const("ROTARY_DIM", op.rotary_dim), bool_const("INTERLEAVED", op.interleaved),
       f32_const("ATTENTION_FACTOR", op.attention_factor), f32_const("QUERY_BETA", op.query_beta),
       u32_const("QUERY_CTX_LEN", op.query_ctx_len)});
  add_tables(launch, ctx.tables);
  launch.bindings = {ctx.state, heads.x, op.rotary_dim > 0 ? op.table : unused_binding(ctx)};
  launch.grid = {.x = (pairs + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 2ull * heads.n_heads * heads.head_dim * sizeof(float);
  launch.operations = 6ull * heads.n_heads * heads.head_dim;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
