// Checks and records. One row in each table: they are bound by memory.
#include "kernels/latent/latent.h"

#include "kernels/common/dispatch.h"
#include "kernels/latent/head_part.wgsl.h"
#include "kernels/latent/latent_heads.wgsl.h"
#include "kernels/latent/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kLatentMostInvocations = 64;  // small workgroups spread one row over more of the device
constexpr Variant<HeadPart> kPartRows[] = {{"head_part.portable"}};
constexpr Variant<LatentHeads> kHeadRows[] = {{"latent_heads.portable"}};

}  // namespace

std::span<const Variant<HeadPart>> head_part_variants() { return kPartRows; }
std::span<const Variant<LatentHeads>> latent_heads_variants() { return kHeadRows; }

Result<void> record(Context& ctx, const HeadPart& op) {
  const uint64_t row_bytes = uint64_t{ctx.max_rows} * op.n_heads * sizeof(float);
  if (op.n_heads == 0 || op.n == 0 || op.first + op.n > op.head_dim) {
    return fail(ErrorKind::kInternal, "Values %u to %u of %u heads of %u.", op.first, op.first + op.n,
                op.n_heads, op.head_dim);
  }
  DP_CHECK(check_view(op.x, row_bytes * op.head_dim, "x of head_part"));
  DP_CHECK(check_view(op.y, row_bytes * op.n, "y of head_part"));
  DP_TRY(const auto row, select("head_part", head_part_variants(), op,
                                format_text("%ux%u of %u", op.n_heads, op.n, op.head_dim), ctx));
  const uint32_t columns = op.n_heads * op.n;
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), columns, kLatentMostInvocations);
  Launch launch{.variant = row->name, .entry = "latent/head_part", .layout = wgsl::head_part::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup), u32_const("N_HEADS", op.n_heads),
                   u32_const("HEAD_DIM", op.head_dim), u32_const("FIRST", op.first), u32_const("N", op.n)};
  launch.bindings = {op.x, op.y};
  launch.grid = {.x = (columns + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 8ull * columns;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const LatentHeads& op) {
  const uint64_t rows_bytes = uint64_t{ctx.max_rows} * sizeof(float);
  if (op.n_heads == 0 || op.rank == 0 || op.latent_column + op.rank > op.kv_stride ||
      op.key_column + op.rope_dim > op.kv_stride) {
    return fail(ErrorKind::kInternal,
                "%u heads on latents of %u from column %u on and keys of %u from %u on, in rows of %u.",
                op.n_heads, op.rank, op.latent_column, op.rope_dim, op.key_column, op.kv_stride);
  }
  DP_CHECK(check_view(op.q, rows_bytes * op.n_heads * (op.nope_dim + op.rope_dim), "q of latent_heads"));
  DP_CHECK(check_view(op.absorbed, rows_bytes * op.n_heads * op.rank, "absorbed of latent_heads"));
  DP_CHECK(check_view(op.kv, rows_bytes * op.kv_stride, "kv of latent_heads"));
  DP_CHECK(check_view(op.qkv, rows_bytes * op.columns(), "qkv of latent_heads"));
  DP_TRY(const auto row,
         select("latent_heads", latent_heads_variants(), op,
                format_text("%u of %u+%u on %u", op.n_heads, op.nope_dim, op.rope_dim, op.rank), ctx));
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), op.columns(), kLatentMostInvocations);
  Launch launch{.variant = row->name, .entry = "latent/latent_heads", .layout = wgsl::latent_heads::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup),
                   u32_const("N_HEADS", op.n_heads),
                   u32_const("NOPE_DIM", op.nope_dim),
                   u32_const("ROPE_DIM", op.rope_dim),
                   u32_const("RANK", op.rank),
                   u32_const("KV_STRIDE", op.kv_stride),
                   u32_const("LATENT", op.latent_column),
                   u32_const("KEY", op.key_column)};
  launch.bindings = {op.q, op.absorbed, op.kv, op.qkv};
  launch.grid = {.x = (op.columns() + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = 8ull * op.columns();
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
