// Checks and records rope_kv; makes its table of steps.
#include "kernels/rope/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/common/dispatch.h"
#include "kernels/common/measured.h"
#include "kernels/common/tables.h"
#include "kernels/rope/rope_kv_norm_portable.wgsl.h"
#include "kernels/rope/rope_kv_norm_subgroup.wgsl.h"
#include "kernels/rope/rope_kv_portable.wgsl.h"
#include "kernels/rope/rope_kv_q8_0.wgsl.h"
#include "kernels/rope/variants.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kRopeMostInvocations = 64;  // of few rows
constexpr uint32_t kRopeMostOfHead =
    128;  // with norms a workgroup is one head; the largest published have 256 values

bool has_norms(const RopeKv& op) { return op.norms.valid(); }
bool is_q8_0(const RopeKv& op) { return op.cache.format == CacheFormat::kQ8_0; }

// Without norms invocations do not talk to each other, so subgroups have nothing to add.
std::string only_with_norms(const RopeKv& op, const gpu::Caps&) {
  if (is_q8_0(op)) return "the cache is in q8_0, whose blocks are made in workgroup memory";
  return has_norms(op) ? "" : "heads are not normalised, so there is nothing to sum";
}

constexpr Variant<RopeKv> kRopeRows[] = {
    {.name = "rope_kv.subgroup",
     .lane = Lane::kSubgroups,
     .needs = kNeedSubgroups,
     .refuse = only_with_norms},
    {.name = "rope_kv.portable"},
};

Result<void> check(const Context& ctx, const RopeKv& op) {
  const CacheView& cache = op.cache;
  if (op.n_heads == 0 || cache.n_kv_heads == 0 || cache.head_dim == 0 || cache.ctx_len == 0) {
    return fail(ErrorKind::kInternal, "rope_kv of %u heads, %u kv heads, head_dim %u, ctx_len %u.",
                op.n_heads, cache.n_kv_heads, cache.head_dim, cache.ctx_len);
  }
  if (op.rotary_dim % 2 != 0 || op.rotary_dim > cache.head_dim) {
    return fail(ErrorKind::kUnsupported, "Rotary dimension (%u) is odd or larger than head_dim (%u).",
                op.rotary_dim, cache.head_dim);
  }
  if (is_q8_0(op) && cache.head_dim % kCacheBlock != 0) {
    return fail(ErrorKind::kUnsupported,
                "Head dimension (%u) is not a multiple of the q8_0 cache's block (%u).", cache.head_dim,
                kCacheBlock);
  }
  if (op.column + uint64_t{op.heads()} * cache.head_dim > op.row_stride()) {
    return fail(ErrorKind::kInternal, "rope_kv of %u heads of %u from column %u of %u.", op.heads(),
                cache.head_dim, op.column, op.row_stride());
  }
  const uint64_t head_bytes = uint64_t{ctx.max_rows} * cache.head_dim * sizeof(float);
  DP_CHECK(check_view(op.qkv, uint64_t{ctx.max_rows} * op.row_stride() * sizeof(float), "qkv of rope_kv"));
  DP_CHECK(check_view(op.q_out, head_bytes * op.n_heads, "q_out of rope_kv"));
  DP_CHECK(check_view(cache.k, cache.bytes(), "k cache of rope_kv"));
  DP_CHECK(check_view(cache.v, cache.bytes(), "v cache of rope_kv"));
  uint64_t table_bytes = op.rotary_dim / 2 * 8ull;
  if (op.places == RopePlaces::kAxes) table_bytes += ctx.max_rows * kAxesRowBytes;
  if (op.places == RopePlaces::kShifted) table_bytes += kShiftBytes;
  if (op.places == RopePlaces::kShiftedBySlot) table_bytes += ctx.tables.sequences * kShiftBytes;
  if (op.rotary_dim > 0) DP_CHECK(check_view(op.table, table_bytes, "table of rope_kv"));
  if (op.norms_of_rows) return fail(ErrorKind::kInternal, "rope_kv normalises heads, not rows.");
  if (has_norms(op)) DP_CHECK(check_view(op.norms, op.norms_bytes(), "norms of rope_kv"));
  return {};
}

constexpr std::pair<CacheFormat, const char*> kFormatNames[] = {
    {CacheFormat::kF16, "f16"}, {CacheFormat::kF32, "f32"}, {CacheFormat::kQ8_0, "q8_0"}};

}  // namespace

const char* cache_format_name(CacheFormat format) {
  return std::ranges::find(kFormatNames, format, &std::pair<CacheFormat, const char*>::first)->second;
}

std::optional<CacheFormat> cache_format_of(std::string_view name) {
  for (const auto& [format, known] : kFormatNames) {
    if (name == known) return format;
  }
  return std::nullopt;
}

uint64_t CacheView::row_bytes() const {
  const uint64_t values = padded_head_dim();
  switch (format) {
    case CacheFormat::kF16:
      return values * 2;
    case CacheFormat::kF32:
      return values * 4;
    case CacheFormat::kQ8_0:
      return values + (values / kCacheBlock * 2 + 7) / 8 * 8;
  }
  return 0;
}

std::span<const Variant<RopeKv>> rope_kv_variants() { return kRopeRows; }

std::vector<uint32_t> make_rope_table(std::span<const double> inv_freq) {
  std::vector<uint32_t> table;
  table.reserve(inv_freq.size() * 2);
  for (double frequency : inv_freq) {
    const double turns = frequency / (2 * std::numbers::pi);  // per position; whole turns do not matter
    const double high = std::ldexp(turns - std::floor(turns), 32);
    const double high_word = std::floor(high);
    const double low_word = std::floor(std::ldexp(high - high_word, 32));  // below 2^32, and exact
    table.push_back(static_cast<uint32_t>(low_word));
    table.push_back(static_cast<uint32_t>(high_word));
  }
  return table;
}

void add_places(Launch& launch, const RopeKv& op) {
  if (op.places == RopePlaces::kRow) return;
  launch.substitutions.emplace_back("rope/rope_kv_rotate", "rope/rope_kv_rotate_placed");
  launch.substitutions.emplace_back("rope/rope_pair", "rope/rope_pair_shifted");
  if (op.places == RopePlaces::kShiftedBySlot) {
    launch.substitutions.emplace_back("rope/rope_place_shifted", "rope/rope_place_shifted_many");
  }
  if (op.places != RopePlaces::kAxes) return;
  launch.substitutions.emplace_back("rope/rope_place_shifted", "rope/rope_place_axes");
  const RopeAxes& axes = op.axes;
  launch.consts.push_back(bool_const("AXES_INTERLEAVED", axes.interleaved));
  launch.consts.push_back(u32_const("AXIS_HEIGHT", axes.interleaved ? axes.height : axes.time));
  launch.consts.push_back(u32_const("AXIS_WIDTH", axes.interleaved ? axes.width : axes.time + axes.height));
}

Result<void> record(Context& ctx, const RopeKv& op) {
  DP_CHECK(check(ctx, op));
  const CacheView& cache = op.cache;
  const bool f16 = cache.format == CacheFormat::kF16;
  DP_TRY(const auto row, select("rope_kv", rope_kv_variants(), op,
                                format_text("%ux%u+%u %s", op.n_heads, cache.head_dim, cache.n_kv_heads,
                                            cache_format_name(cache.format)),
                                ctx));

  const uint32_t heads = op.heads();
  const bool norms = has_norms(op);
  const bool by_heads = norms || is_q8_0(op);
  const uint32_t head_pairs = cache.padded_head_dim() / 2;
  const uint32_t pairs = heads * head_pairs;
  const uint32_t most = ctx.max_rows > kRowsThatFill ? kMostInvocationsOfMany : kRopeMostInvocations;
  const uint32_t workgroup = by_heads ? workgroup_for(ctx.plan.caps(), head_pairs, kRopeMostOfHead)
                                      : workgroup_for(ctx.plan.caps(), pairs, most);
  Launch launch{
      .variant = row->name, .entry = "rope/rope_kv_portable", .layout = wgsl::rope_kv_portable::kLayout};
  if (is_q8_0(op)) {
    launch.entry = "rope/rope_kv_q8_0";
    launch.layout = wgsl::rope_kv_q8_0::kLayout;
  } else if (row->needs & kNeedSubgroups) {
    launch.entry = "rope/rope_kv_norm_subgroup";
    launch.layout = wgsl::rope_kv_norm_subgroup::kLayout;
    launch.subgroups = true;
  } else if (norms) {
    launch.entry = "rope/rope_kv_norm_portable";
    launch.layout = wgsl::rope_kv_norm_portable::kLayout;
  }
  launch.consts = {u32_const("WORKGROUP", workgroup),
                   u32_const("N_HEADS", op.n_heads),
                   u32_const("N_KV_HEADS", cache.n_kv_heads),
                   u32_const("QKV_STRIDE", op.row_stride()),
                   u32_const("QKV_COLUMN", op.column),
                   u32_const("HEAD_DIM", cache.head_dim),
                   u32_const("PADDED_HEAD_DIM", cache.padded_head_dim()),
                   u32_const("ROTARY_DIM", op.rotary_dim),
                   u32_const("CTX_LEN", cache.ctx_len),
                   bool_const("INTERLEAVED", op.interleaved),
                   bool_const("CACHE_F16", f16),
                   f32_const("ATTENTION_FACTOR", op.attention_factor)};
  add_places(launch, op);
  add_tables(launch, ctx.tables, cache.in_windows);
  add_ring(launch, cache.ring_len);
  launch.bindings = {ctx.state, op.qkv, op.rotary_dim > 0 ? op.table : op.qkv, op.q_out, cache.k, cache.v};
  if (by_heads) {
    launch.consts.push_back(f32_const("NORM_EPS", op.norm_eps));
    launch.bindings.push_back(norms ? op.norms : op.qkv);
  }
  if (is_q8_0(op)) launch.consts.push_back(bool_const("HAS_NORMS", norms));
  launch.grid = {
      .x = by_heads ? heads : (pairs + workgroup - 1) / workgroup, .rows_axis = 1, .rows_per_group = 1};
  launch.bytes = uint64_t{heads} * cache.head_dim * 4 + uint64_t{op.n_heads} * cache.head_dim * 4 +
                 2 * cache.n_kv_heads * cache.row_bytes();
  launch.operations = 6ull * (op.n_heads + cache.n_kv_heads) * cache.head_dim;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
