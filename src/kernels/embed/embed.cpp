// Checks and records the embedding gather: a dispatch per piece of the table. Read next: embed_rows.wgsl.
#include "kernels/embed/embed.h"

#include "kernels/common/dispatch.h"
#include "kernels/embed/embed_rows.wgsl.h"
#include "kernels/embed/variants.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kColumns = 8;  // of one invocation
constexpr uint32_t kEmbedMostInvocations = 64;
constexpr Variant<Embed> kEmbedRows[] = {{.name = "embed.portable"}};

}  // namespace

std::span<const Variant<Embed>> embed_variants() { return kEmbedRows; }

Result<void> record(Context& ctx, const Embed& op) {
  const Weight& table = op.table;
  DP_CHECK(check_view(op.tokens, uint64_t{4} * ctx.max_rows, "tokens of embed"));
  DP_CHECK(check_view(op.y, uint64_t{4} * ctx.max_rows * table.k, "y of embed"));
  const char* format = weight_format_info(table.format).name;
  DP_TRY(const auto row,
         select("embed", embed_variants(), op, format_text("%s %ux%u", format, table.n, table.k), ctx));
  const WeightLayout layout = weight_layout(table.format, table.n, table.k);
  const uint32_t eights = (table.k + kColumns - 1) / kColumns;
  const uint32_t workgroup = workgroup_for(ctx.plan.caps(), eights, kEmbedMostInvocations);
  Launch launch{.variant = row->name, .entry = "embed/embed_rows", .layout = wgsl::embed_rows::kLayout};
  launch.consts = {u32_const("WORKGROUP", workgroup)};
  launch.substitutions = {{"linear/weights/format", weight_fragment(table.format, false)}};
  launch.grid = {
      .x = (eights + workgroup - 1) / workgroup,
      .rows_axis = 1,
      .rows_per_group = ctx.max_rows == 1 ? 0u : 1u};  // one row, also at the end of a prefill plan
  for (const WeightPiece& piece : table.pieces) {
    const PieceViews views = piece_views(table, piece);
    const wgsl::embed_rows::Params params{.k = table.k,
                                          .row_vec4s = static_cast<uint32_t>(layout.plane0_row_bytes / 16),
                                          .units = (layout.padded_k + 31) / 32,
                                          .first_row = piece.first_row,
                                          .rows = piece.rows,
                                          .table_rows = table.n,
                                          .scale = op.scale};
    launch.params = {reinterpret_cast<const uint8_t*>(&params), sizeof(params)};
    launch.bindings = {views.weights, views.scales, op.tokens, op.y};
    launch.bytes = layout.plane0_row_bytes + layout.plane1_row_bytes + uint64_t{4} * table.k;
    launch.operations = table.k;
    DP_CHECK(dispatch(ctx, launch));
  }
  return {};
}

}  // namespace doppler::kernels
