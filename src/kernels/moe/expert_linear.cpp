// expert_linear.h: the choice of a variant, checks, and a dispatch per piece. Read next: expert_tile.wgsl.
#include "kernels/moe/expert_linear.h"

#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/linear/matvec/matvec_tile.h"
#include "kernels/moe/expert_bindings.wgsl.h"
#include "kernels/moe/expert_grouped.h"
#include "kernels/moe/expert_place.h"
#include "kernels/moe/expert_tile.wgsl.h"
#include "kernels/moe/expert_tile_gate.wgsl.h"
#include "kernels/moe/variants.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kExpertLinearUnit = 32;  // columns

Result<void> check_gate(const Context& ctx, const ExpertLinear& op) {
  if (op.matrices != 2) {
    return fail(ErrorKind::kInternal, "%u matrices of %s were to be a gate and its up.", op.matrices,
                ctx.op_label.c_str());
  }
  const uint32_t columns = op.routes.n_used * op.n;
  const Rows& y = op.gate->y;
  if (y.f32.valid() || !y.q8.valid()) {
    DP_CHECK(check_view(y.f32, uint64_t{ctx.max_rows} * columns * sizeof(float), "y of gated experts"));
  }
  if (!y.q8.valid()) return {};
  return check_view(y.q8, q8_bytes(ctx.max_rows, columns), "q8 of gated experts");
}

Result<void> check(const Context& ctx, const ExpertLinear& op) {
  const Weight& weight = op.weight;
  const char* label = ctx.op_label.c_str();
  const uint32_t used = op.routes.n_used;
  if (op.matrices == 0 || op.n == 0 || weight.n != op.matrices * op.routes.n_experts * op.n) {
    return fail(ErrorKind::kInternal,
                "The weight of %s has %u rows; %u matrices of %u experts of %u have not.", label, weight.n,
                op.matrices, op.routes.n_experts, op.n);
  }
  for (const WeightPiece& piece : weight.pieces) {
    if (piece.first_row % op.n == 0 && piece.rows % op.n == 0 &&
        (op.matrices == 1 || piece.rows == weight.n)) {
      continue;
    }
    return fail(ErrorKind::kInternal,
                "A piece of the weight of %s holds rows %u to %u, not whole experts of %u.", label,
                piece.first_row, piece.first_row + piece.rows, op.n);
  }
  const uint64_t x_rows = uint64_t{ctx.max_rows} * (op.x_per_slot ? used : 1);
  if (op.x.q8.valid()) {
    DP_CHECK(check_view(op.x.q8, q8_bytes(static_cast<uint32_t>(x_rows), weight.k), "x.q8 of expert_linear"));
  } else {
    DP_CHECK(check_view(op.x.f32, x_rows * weight.k * sizeof(float), "x of expert_linear"));
  }
  DP_CHECK(check_view(op.routes.view, op.routes.bytes(ctx.max_rows), "routes of expert_linear"));
  if (op.bias.valid()) DP_CHECK(check_view(op.bias, weight.n * sizeof(float), "bias of expert_linear"));
  if (op.gate) return check_gate(ctx, op);
  const uint64_t columns = uint64_t{op.matrices} * used * op.n;
  if (op.y_column + columns > op.y_stride) {
    return fail(ErrorKind::kInternal, "Columns %u to %llu of %s do not fit rows of %u.", op.y_column,
                static_cast<unsigned long long>(op.y_column + columns), label, op.y_stride);
  }
  return check_view(op.y, uint64_t{ctx.max_rows} * op.y_stride * sizeof(float), "y of expert_linear");
}

// Outputs of a slot.
uint32_t outputs_of(const ExpertLinear& op) { return op.gate ? op.n : op.matrices * op.n; }

// Outputs of a workgroup, and the constants that shape it.
struct ExpertLinearShape {
  uint32_t outputs = 1;
  std::vector<gpu::WgslConst> consts;
};

// As a matvec of the same outputs: half tiles, and slices of the columns until the device is full.
ExpertLinearShape tile_shape(Context& ctx, const ExpertLinear& op, Choice& choice) {
  constexpr uint32_t kUnitsEach = 4, kHalf = kTileRows / 2;
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t fitting =
      std::min({kMostTileInvocations.value, caps.max_invocations, caps.max_workgroup_size_x});
  const uint32_t units = op.weight.k / kExpertLinearUnit;
  const bool few = outputs_of(op) * op.routes.n_used / kTileRows < kEnoughTiles.of(caps);
  const uint32_t rows = tunable(ctx.policy, choice, "rows", few ? kHalf : kTileRows, {kHalf, kTileRows});
  const uint32_t most = std::max(fitting / rows, 1u);
  std::vector<uint32_t> alternatives;
  for (uint32_t s = 1; s <= std::min(most, units); s *= 2) alternatives.push_back(s);
  const uint32_t slices = tunable(ctx.policy, choice, "slices", std::clamp(units / kUnitsEach, 1u, most),
                                  std::move(alternatives));
  const uint32_t depth =
      tunable(ctx.policy, choice, "depth", weight_format_info(op.weight.format).quantised() ? 4 : 2, {2, 4});
  return {.outputs = rows,
          .consts = {u32_const("UNITS", units), u32_const("ROWS", rows), u32_const("SLICES", slices),
                     u32_const("SUMS", op.gate ? 2 : 1), u32_const("DEPTH", depth)}};
}

ExpertLinearShape row_shape(const Context& ctx, const ProductRow& row, const ExpertLinear& op) {
  constexpr uint32_t kCpuWorkgroup = 8, kCpuRows = 4;  // those of matvec
  constexpr uint32_t kMost = 256, kSection = 32;
  const WeightLayout layout = weight_layout(op.weight.format, op.weight.n, op.weight.k);
  const gpu::Caps& caps = ctx.plan.caps();
  ExpertLinearShape shape{
      .outputs = kCpuWorkgroup * kCpuRows,
      .consts = {u32_const("K", op.weight.k), u32_const("ROW_VEC4S", layout.plane0_row_bytes / 16),
                 u32_const("UNITS", (layout.padded_k + kExpertLinearUnit - 1) / kExpertLinearUnit)}};
  if (row.algorithm == Algorithm::kWholeRows) {
    shape.consts.push_back(u32_const("WORKGROUP", kCpuWorkgroup));
    shape.consts.push_back(u32_const("ROWS", kCpuRows));
    return shape;
  }
  const uint32_t most = std::bit_floor(std::min({kMost, caps.max_invocations, caps.max_workgroup_size_x}));
  const uint32_t section = std::clamp(std::bit_ceil((op.weight.k + 7) / 8), 1u, kSection);
  const uint32_t sections = std::max(1u, most / section);
  shape.outputs = 2 * sections;
  shape.consts.push_back(u32_const("WORKGROUP", sections * section));
  shape.consts.push_back(u32_const("THREADS_PER_ROW", section));
  return shape;
}

// x as two bindings: f32 and anything, or the planes of q8.
XViews views_of(const Rows& x, bool q8, uint32_t rows, uint32_t k) {
  if (!q8) return {.x = x.f32, .scales = x.f32};
  const uint64_t plane1 = q8_plane1_offset(rows, k);
  return {.x = x.q8.sub(0, uint64_t{rows} * k), .scales = x.q8.sub(plane1, q8_bytes(rows, k) - plane1)};
}

void choose_entry(const ProductRow& row, const Weight& weight, Launch& launch) {
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/matvec/tile_x", row.q8 ? "moe/expert_x_q8" : "moe/expert_x_f32"},
      {"linear/matvec/unit_x", row.q8 ? "linear/matvec/unit_x_q8" : "linear/matvec/unit_x_f32"},
      {"linear/x", "linear/linear_x_any"}};
  launch.entry = row.algorithm == Algorithm::kTiled       ? "moe/expert_tile"
                 : row.algorithm == Algorithm::kWholeRows ? "moe/expert_whole_rows"
                                                          : "moe/expert_portable";
  launch.layout = wgsl::expert_bindings::kLayout;
  if (row.algorithm == Algorithm::kTiled) launch.layout = wgsl::expert_tile::kLayout;
}

// The constants and bindings that expert_tile_gate has instead of expert_tile's y.
void choose_gate(Context& ctx, const ExpertLinear& op, Launch& launch) {
  const Rows& y = op.gate->y;
  launch.entry = "moe/expert_tile_gate";
  launch.layout = wgsl::expert_tile_gate::kLayout;
  for (const gpu::WgslConst& value :
       {u32_const("ACTIVATE", static_cast<uint32_t>(op.gate->activation)), bool_const("HAS_Y", y.f32.valid()),
        bool_const("HAS_Q8", y.q8.valid()),
        u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, op.routes.n_used * op.n) / 4)}) {
    launch.consts.push_back(value);
  }
  launch.bindings.back() = y.f32.valid() ? y.f32 : unused_binding(ctx);
  launch.bindings.push_back(y.q8.valid() ? y.q8 : unused_binding(ctx));
}

}  // namespace

void add_place_consts(const ExpertLinear& op, const WeightPiece& piece, std::vector<gpu::WgslConst>& consts) {
  for (const gpu::WgslConst& value :
       {u32_const("N", op.n), u32_const("MATRICES", op.matrices), u32_const("N_EXPERTS", op.routes.n_experts),
        u32_const("N_USED", op.routes.n_used), bool_const("X_PER_SLOT", op.x_per_slot),
        u32_const("PIECE_FIRST", piece.first_row), u32_const("PIECE_ROWS", piece.rows),
        bool_const("HAS_BIAS", op.bias.valid()), u32_const("Y_STRIDE", op.y_stride),
        u32_const("Y_COLUMN", op.y_column)}) {
    consts.push_back(value);
  }
}

std::string refuse_expert_gate(const ProductChoice& choice, ActivationFn activation) {
  if (choice.row->algorithm != Algorithm::kTiled) {
    return format_text("%s makes no tiles of a row's own experts", std::string(choice.row->name).c_str());
  }
  if (activation == ActivationFn::kNone || activation > ActivationFn::kGeluErf) {
    return format_text("activation %s gates nothing", activation_name(activation));
  }
  return "";
}

bool reads_groups(const ProductChoice& choice) {
  return choice.row->algorithm == Algorithm::kGroupedMatrix || choice.row->algorithm == Algorithm::kGrouped;
}

Result<ProductChoice> resolve_expert_product(const Context& ctx, const Weight& weight, uint32_t n) {
  const ProductShape shape{
      .format = weight.format, .n = n, .k = weight.k, .max_rows = std::max(ctx.max_rows, ctx.least_rows)};
  const char* format = weight_format_info(weight.format).name;
  DP_TRY(Resolved<ProductRow> resolved,
         (resolve<ProductRow, ProductShape>(
             expert_operation(weight.format), expert_matvec_variants(weight.format), shape,
             format_text("%s %ux%u", format, n, weight.k), ctx.plan.caps(), ctx.policy)));
  return ProductChoice{.row = resolved.row, .choice = std::move(resolved.choice), .max_rows = ctx.max_rows};
}

Result<void> record(Context& ctx, const ProductChoice& choice, const ExpertLinear& op) {
  DP_CHECK(check(ctx, op));
  const ProductRow& row = *choice.row;
  const Weight& weight = op.weight;
  const uint32_t used = op.routes.n_used, x_slots = op.x_per_slot ? used : 1;
  Rows x = op.x;
  if (row.q8 && !x.q8.valid()) {
    x.q8 = ctx.plan.scratch("x.q8", q8_bytes(ctx.max_rows, x_slots * weight.k));
    DP_CHECK(record(ctx, QuantizeQ8{.x = x.f32, .q8 = x.q8, .k = x_slots * weight.k}));
  }
  if (reads_groups(choice)) {
    ExpertLinear grouped = op;
    grouped.x = x;
    return record_grouped(ctx, choice, grouped);
  }
  const XViews views = views_of(x, row.q8, ctx.max_rows * x_slots, weight.k);
  Choice noted = choice.choice;
  const ExpertLinearShape shape =
      row.algorithm == Algorithm::kTiled ? tile_shape(ctx, op, noted) : row_shape(ctx, row, op);
  Launch launch{.variant = row.name};
  choose_entry(row, weight, launch);
  if (op.gate) choose_block_fragments(ctx, launch);
  launch.grid = {.x = (outputs_of(op) + shape.outputs - 1) / shape.outputs,
                 .y = used,
                 .rows_axis = 2,
                 .rows_per_group = 1};
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews pieces = piece_views(weight, piece);
    launch.consts = shape.consts;
    add_place_consts(op, piece, launch.consts);
    launch.bindings = {pieces.weights,
                       pieces.scales,
                       views.x,
                       views.scales,
                       op.routes.view,
                       op.bias.valid() ? op.bias : pieces.scales,
                       op.y};
    if (op.gate) choose_gate(ctx, op, launch);
    // For a row: the experts that it uses, as if each row used others.
    const uint64_t share = piece_bytes(weight, piece) * used / op.routes.n_experts;
    launch.bytes = share + (row.q8 ? q8_bytes(1, weight.k) : uint64_t{4} * weight.k) * x_slots +
                   uint64_t{4} * outputs_of(op) * used;
    launch.operations = uint64_t{2} * op.matrices * used * op.n * weight.k;
    DP_CHECK(dispatch(ctx, launch));
  }
  note_choice(ctx, noted);
  return {};
}

}  // namespace doppler::kernels
