// Checks and records embed_norm: one workgroup that does everything, or the gather and the norm as kernels of their
// own. Read next: embed_norm_row.wgsl.
#include "kernels/embed/embed_norm.h"

#include "kernels/embed/embed.h"
#include "kernels/embed/embed_norm.wgsl.h"
#include "kernels/embed/embed_norm_row.h"
#include "kernels/embed/variants.h"
#include "kernels/linear/product.h"
#include "kernels/rms_norm/rms_norm.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kEmbedNormMostInvocations = 512;
constexpr uint32_t kEmbedNormMostColumns = 16384;  // they lie in the registers of one workgroup

constexpr Variant<EmbedNorm> kEmbedNormRows[] = {
    {.name = "embed_norm.row", .refuse = refuse_embed_norm_row},
    {.name = "embed_norm.apart"},
};

}  // namespace

std::span<const Variant<EmbedNorm>> embed_norm_variants() { return kEmbedNormRows; }

Result<void> check_embed_norm(const EmbedNorm& op) {
  const uint64_t row_bytes = uint64_t{op.table.k} * sizeof(float);
  DP_CHECK(check_view(op.norm_weight, row_bytes, "norm weight of embed_norm"));
  DP_CHECK(check_view(op.x, row_bytes, "x of embed_norm"));
  if (op.h.k != op.table.k || (op.h.q8 && op.h.k % 32 != 0)) {
    return fail(ErrorKind::kInternal, "h of embed_norm has %u columns of %u, and in 8 bits a multiple of 32.",
                op.h.k, op.table.k);
  }
  return check_view(op.h.buffer, NormedRow::bytes(op.h.k), "h of embed_norm");
}

std::string refuse_embed_norm_row(const EmbedNorm& op, const gpu::Caps&) {
  if (op.table.k % 4 != 0 || op.table.k > kEmbedNormMostColumns) {
    return format_text("the row length (%u) is not a multiple of 4 up to %u", op.table.k,
                       kEmbedNormMostColumns);
  }
  if (op.table.pieces.size() != 1) {
    return format_text("the table lies in %zu buffers, and one is bound", op.table.pieces.size());
  }
  return "";
}

uint32_t embed_norm_workgroup(const gpu::Caps& caps, const EmbedNorm& op, uint32_t items) {
  return workgroup_for(caps, std::max(items, op.table.k / 4), kEmbedNormMostInvocations);
}

void add_embed_norm(Launch& launch, const EmbedNorm& op) {
  const Weight& table = op.table;
  const WeightLayout layout = weight_layout(table.format, table.n, table.k);
  const PieceViews views = piece_views(table, table.pieces[0]);
  launch.substitutions.emplace_back("linear/weights/format", weight_fragment(table.format, false));
  launch.consts.insert(
      launch.consts.end(),
      {u32_const("K", table.k), u32_const("UNITS", (layout.padded_k + 31) / 32),
       u32_const("ROW_VEC4S", layout.plane0_row_bytes / 16), u32_const("TABLE_ROWS", table.n),
       f32_const("SCALE", op.scale), f32_const("EPS", op.eps), bool_const("HAS_Q8", op.h.q8),
       u32_const("Q8_PLANE1", q8_plane1_offset(1, table.k) / 4),
       u32_const("H_F32", NormedRow::f32_offset(table.k) / 4)});
  launch.bindings.insert(launch.bindings.end(),
                         {views.weights, views.scales, op.norm_weight, op.x, op.h.buffer});
  launch.fixed_bytes += layout.plane0_row_bytes + layout.plane1_row_bytes + uint64_t{12} * table.k;
  launch.operations += uint64_t{5} * table.k;
}

Result<void> record(Context& ctx, const EmbedNorm& op) {
  DP_CHECK(check_embed_norm(op));
  DP_CHECK(check_view(op.token, sizeof(uint32_t), "token of embed_norm"));
  const char* format = weight_format_info(op.table.format).name;
  DP_TRY(const auto row, select("embed_norm", embed_norm_variants(), op,
                                format_text("%s %ux%u", format, op.table.n, op.table.k), ctx));
  if (row == &kEmbedNormRows[0]) {
    Launch launch{.variant = row->name, .entry = "embed/embed_norm", .layout = wgsl::embed_norm::kLayout};
    launch.consts = {u32_const("WORKGROUP", embed_norm_workgroup(ctx.plan.caps(), op, 0))};
    launch.bindings = {op.token};
    add_embed_norm(launch, op);
    return dispatch(ctx, launch);
  }
  Context one_row = ctx;
  one_row.max_rows = 1;
  DP_CHECK(record(one_row, Embed{.table = op.table, .tokens = op.token, .y = op.x, .scale = op.scale}));
  return record(
      one_row,
      RmsNorm{.x = op.x, .weight = op.norm_weight, .y = op.h.rows(), .n = op.table.k, .eps = op.eps});
}

}  // namespace doppler::kernels
