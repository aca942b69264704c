// A copy in f16 of the keys and values that the step's rows see. Kernels of attention that do not read bytes have it
// before them if the cache is in q8_0. Read next: attention_unpack.wgsl.
#include <algorithm>

#include "kernels/attention/attention_unpack.wgsl.h"
#include "kernels/attention/measured.h"
#include "kernels/attention/recording.h"
#include "kernels/common/tables.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnpackWorkgroup = 128;

constexpr Variant<Attention> kUnpackRows[] = {{.name = "attention_unpack.portable"}};

}  // namespace

std::span<const Variant<Attention>> attention_unpack_variants() { return kUnpackRows; }

Result<Attention> unpacked(Context& ctx, const Attention& op, bool each_row) {
  if (op.cache.format != CacheFormat::kQ8_0) return op;
  DP_TRY(const auto* row, select("attention_unpack", attention_unpack_variants(), op,
                                 format_text("q8_0 to f16, %u heads of %u, %u keys", op.cache.n_kv_heads,
                                             op.cache.head_dim, visible_keys(op)),
                                 ctx));
  Attention out = op;
  out.cache.format = CacheFormat::kF16;
  out.cache.k = ctx.plan.scratch("keys in f16", out.cache.bytes());
  out.cache.v = ctx.plan.scratch("values in f16", out.cache.bytes());

  // A run each: the step's rows, a piece of a prompt, or a row.
  const SingleRows rows = single_rows(ctx, op);
  const bool many = ctx.tables.sequences != 0;
  const bool row_runs = each_row && (many || ctx.max_rows == 1);
  Launch launch{
      .variant = row->name, .entry = "attention/attention_unpack", .layout = wgsl::attention_unpack::kLayout};
  launch.consts = {
      u32_const("D8", op.cache.padded_head_dim() / 8), u32_const("CTX_LEN", op.cache.ctx_len),
      u32_const("WINDOW", op.window == 0 ? UINT32_MAX : op.window),
      u32_const("WORKGROUP", workgroup_for(ctx.plan.caps(), kUnpackWorkgroup, kUnpackWorkgroup))};
  add_tables(launch, ctx.tables, op.cache.in_windows, op.each_row);
  add_ring(launch, op.cache.ring_len);
  if (many) launch.consts.push_back(u32_const("N_KV_HEADS", op.cache.n_kv_heads));
  if (row_runs) {
    launch.substitutions.emplace_back("attention/attention_one_run", "attention/attention_row_runs");
  } else if (many) {
    launch.substitutions.emplace_back("attention/attention_one_run", "attention/attention_many_runs");
  }
  launch.bindings = {ctx.state, op.cache.k, op.cache.v, out.cache.k, out.cache.v};
  const uint32_t runs = row_runs ? rows.most : many ? kMaxPieces : 1;
  const uint32_t useful =
      (visible_keys(op) * op.cache.padded_head_dim() / 8 + kUnpackWorkgroup - 1) / kUnpackWorkgroup;
  // Whatever the context: each workgroup goes on to further keys.
  const uint32_t workgroups = kTargetWorkgroups.of(ctx.plan.caps());
  launch.grid = {.x = std::clamp(workgroups / (op.cache.n_kv_heads * runs), 1u, useful),
                 .y = op.cache.n_kv_heads,
                 .z = runs};
  const uint64_t read = 2 * op.cache.n_kv_heads * op.cache.row_bytes() * visible_keys(op);
  const uint64_t written = 2 * op.cache.n_kv_heads * out.cache.row_bytes() * visible_keys(op);
  launch.fixed_bytes = read + written;
  launch.keys = visible_keys(op);
  DP_CHECK(dispatch(ctx, launch));
  return out;
}

}  // namespace doppler::kernels
