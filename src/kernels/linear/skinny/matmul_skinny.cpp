// Records a few rows of x times a weight: a dispatch per piece. Read next: matmul_skinny.wgsl.
#include <algorithm>
#include <bit>

#include "kernels/common/dispatch.h"
#include "kernels/linear/product.h"
#include "kernels/linear/skinny/skinny_bindings.wgsl.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnitOfQ8 = 32, kUnitOfF32 = 8;   // columns, of skinny_unit_q8 and skinny_unit_f32
constexpr uint32_t kVec4sOfQ8 = 3, kVec4sOfF32 = 2;  // that a unit of x takes
constexpr uint32_t kVec4Bytes = 16;
constexpr uint32_t kHalf = kTileRows / 2;

// The constants of matmul_skinny.wgsl under the same names, and of matmul_skinny_cpu.wgsl, which has rows and pair alone.
struct SkinnyShape {
  uint32_t units = 0;
  uint32_t batch = 2;
  uint32_t rows = kTileRows;
  uint32_t pair = 1;
  uint32_t slices = 1;
  uint32_t depth = 1;
  uint32_t x_vec4s = 3;
  uint32_t chunk = 0;  // units of x at a time, of matmul_few
  bool gated = false, q8_out = false;

  uint32_t threads() const { return rows * slices; }
  uint32_t group_rows() const { return gated ? rows : rows * pair; }
  // A subgroup of 32 reads more than one unit of x at once.
  uint32_t padding() const { return rows < kTileRows ? 1 : 0; }
  uint32_t shared_vec4s() const {
    const uint32_t x = chunk != 0 ? chunk * batch * x_vec4s : slices * depth * (batch * x_vec4s + padding());
    return std::max(x, threads() * pair);
  }
  uint32_t block_values() const { return q8_out ? batch * rows : 1; }
  uint32_t bytes() const { return shared_vec4s() * kVec4Bytes + block_values() * 4; }
};

// Rows of x that a workgroup takes: all of them, but in plans of more than matmul_skinny's.
uint32_t batch_of(const Context& ctx) {
  return std::min(kMaxSkinnyRows, std::max(2u, std::bit_ceil(ctx.max_rows)));
}

// Every workgroup reads all of x, so that the more weight rows it makes the better, as long as there are workgroups for a
// large GPU: one for each of an H200's 132 multiprocessors, nearly.
SkinnyShape skinny_shape(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const bool q8 = op.row.q8;
  constexpr uint32_t kEnoughWorkgroups = 128;
  constexpr uint32_t kInvocations = 512, kInvocationsOfMany = 256;  // many sums: many registers
  constexpr uint32_t kManySums = 16;
  // Where workgroups alone fill a device. H200, gate and up of an 8B model: 2 us of 31 less with 4 rows, 1 of 46 with 8.
  constexpr uint32_t kInvocationsOfFull = 128, kFull = 264;
  constexpr uint32_t kMostBytes = 32768;  // of workgroup memory: several workgroups share a multiprocessor
  const gpu::Caps& caps = ctx.plan.caps();
  const bool gated = op.gate != ActivationFn::kNone;
  const uint32_t outputs = weight.pieces.front().rows / (gated ? 2 : 1);
  SkinnyShape shape{.units = weight.k / (q8 ? kUnitOfQ8 : kUnitOfF32),
                    .batch = batch_of(ctx),
                    .x_vec4s = q8 ? kVec4sOfQ8 : kVec4sOfF32,
                    .gated = gated,
                    .q8_out = op.y_q8.valid()};
  const bool whole = outputs / kTileRows >= kEnoughWorkgroups;
  shape.rows = tunable(ctx.policy, op.choice, "rows", whole ? kTileRows : kHalf, {kHalf, kTileRows});
  shape.pair = 2;
  if (!gated) {
    const bool two = q8 && outputs / (2 * kTileRows) >= kEnoughWorkgroups;
    shape.pair = tunable(ctx.policy, op.choice, "pair", two ? 2 : 1, {1, 2});
  }
  const uint32_t invocations = outputs / shape.group_rows() >= kFull   ? kInvocationsOfFull
                               : shape.batch * shape.pair >= kManySums ? kInvocationsOfMany
                                                                       : kInvocations;
  const uint32_t fitting = std::min({kInvocations, caps.max_invocations, caps.max_workgroup_size_x});
  const uint32_t most =
      std::max(1u, std::min(std::bit_floor(fitting) / shape.rows, std::bit_floor(shape.units)));
  std::vector<uint32_t> alternatives;
  for (uint32_t s = 1; s <= most; s *= 2) alternatives.push_back(s);
  shape.slices = tunable(ctx.policy, op.choice, "slices", std::min(most, invocations / shape.rows),
                         std::move(alternatives));
  const uint32_t deep = shape.slices * 2 <= shape.units ? 2 : 1;
  shape.depth = tunable(ctx.policy, op.choice, "depth", deep, {1, 2});
  const uint32_t allowed = std::min(kMostBytes, caps.max_workgroup_bytes);
  while (shape.bytes() > allowed && shape.depth > 1) shape.depth /= 2;
  while (shape.bytes() > allowed && shape.slices > 1) shape.slices /= 2;
  return shape;
}

// H200, 2 and 8 rows, 6144 x 4096, 4096 x 4096 and 4096 x 14336 in tile_q4 (kernel_bench --only few --set ...): the more
// subgroups the better up to 16 with few rows of x, 8 with many; two weight rows an invocation only where x is long and the
// workgroups still are enough.
SkinnyShape few_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kSlices = 16, kSlicesOfMany = 8;
  constexpr uint32_t kManyRows = 8, kEnoughWorkgroups = 96;
  constexpr uint32_t kBytesOfX = 24576;  // of workgroup memory: several workgroups share a multiprocessor
  const gpu::Caps& caps = ctx.plan.caps();
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8,
                    .batch = batch_of(ctx),
                    .pair = 2,
                    .gated = op.gate != ActivationFn::kNone,
                    .q8_out = op.y_q8.valid()};
  const bool many = shape.batch >= kManyRows;
  if (!shape.gated) {
    const bool two = many && op.weight.pieces.front().rows / (2 * shape.rows) >= kEnoughWorkgroups;
    shape.pair = tunable(ctx.policy, op.choice, "pair", two ? 2 : 1, {1, 2});
  }
  shape.slices = tunable(ctx.policy, op.choice, "slices", many ? kSlicesOfMany : kSlices, {1, 2, 4, 8, 16});
  const uint32_t fitting =
      std::min({shape.units, caps.max_invocations / shape.rows, caps.max_workgroup_size_x / shape.rows});
  while (shape.slices > std::max(1u, fitting)) shape.slices /= 2;
  const uint32_t turn = 2 * shape.slices;  // units of a turn of the loop
  const uint32_t allowed = std::min(kBytesOfX, caps.max_workgroup_bytes - 4 * shape.block_values());
  const uint32_t turns = std::max(1u, allowed / (shape.batch * shape.x_vec4s * kVec4Bytes) / turn);
  shape.chunk = std::min((shape.units + turn - 1) / turn, turns) * turn;
  return shape;
}

// lavapipe, 2 cores: one subgroup of 8 a workgroup, as in matvec.cpp.
SkinnyShape cpu_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kWorkgroup = 8;
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8, .batch = batch_of(ctx), .rows = kWorkgroup};
  shape.pair = tunable(ctx.policy, op.choice, "pair", 1, {1, 2});
  return shape;
}

}  // namespace

Result<void> record_matmul_skinny(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const gpu::Caps& caps = ctx.plan.caps();
  const ProductRow& row = op.row;
  const bool of_cpu = row.algorithm == Algorithm::kOnceOfCpu, of_few = row.algorithm == Algorithm::kFew;
  const bool gated = op.gate != ActivationFn::kNone;
  const SkinnyShape shape = of_cpu ? cpu_shape(ctx, op) : of_few ? few_shape(ctx, op) : skinny_shape(ctx, op);
  const WeightLayout layout = weight_layout(weight.format, weight.n, weight.k);
  const XViews x = x_views(op, ctx.max_rows);

  Launch launch{.variant = row.name,
                .entry = of_cpu   ? "linear/skinny/matmul_skinny_cpu"
                         : of_few ? "linear/skinny/matmul_few"
                                  : "linear/skinny/matmul_skinny",
                .layout = wgsl::skinny_bindings::kLayout};
  launch.substitutions = {
      {"linear/weights/format", weight_fragment(weight.format, row.q8)},
      {"linear/skinny/unit", row.q8 ? "linear/skinny/skinny_unit_q8" : "linear/skinny/skinny_unit_f32"},
      {"linear/skinny/x", of_cpu   ? "linear/skinny/skinny_x_direct"
                          : of_few ? "linear/skinny/skinny_x_chunk"
                                   : "linear/skinny/skinny_x_staged"}};
  for (const WeightPiece& piece : weight.pieces) {
    const PieceViews views = piece_views(weight, piece);
    const uint32_t outputs = gated ? piece.rows / 2 : piece.rows;
    const uint32_t groups = (outputs + shape.group_rows() - 1) / shape.group_rows();
    launch.grid = {.rows_axis = 2, .rows_per_group = shape.batch};
    launch.grid.x = std::min(groups, caps.max_workgroups);
    launch.grid.y = (groups + launch.grid.x - 1) / launch.grid.x;
    launch.consts = {u32_const("UNITS", shape.units),
                     u32_const("COLUMNS", weight.k),
                     u32_const("ROW_VEC4S", layout.plane0_row_bytes / kVec4Bytes),
                     u32_const("BATCH", shape.batch),
                     u32_const("PAIR", shape.pair),
                     u32_const("GROUP_ROWS", shape.group_rows()),
                     u32_const("OTHER_ROW", gated ? outputs : shape.rows),
                     u32_const("OUTPUTS", outputs),
                     u32_const("FIRST_ROW", piece.first_row),
                     u32_const("GROUPS_X", launch.grid.x),
                     u32_const("Y_FIRST", op.y_column + piece.first_row),
                     u32_const("Y_STRIDE", op.y_stride != 0 ? op.y_stride : weight.n / (gated ? 2 : 1)),
                     bool_const("HAS_BIAS", op.bias.valid()),
                     bool_const("ACCUMULATE", op.accumulate)};
    const auto add_consts = [&](std::initializer_list<gpu::WgslConst> consts) {
      launch.consts.insert(launch.consts.end(), consts);
    };
    if (of_cpu) {
      add_consts({u32_const("THREADS", shape.rows)});
    } else {
      add_consts({u32_const("ROWS", shape.rows), u32_const("SLICES", shape.slices),
                  u32_const("SHARED_VEC4S", shape.shared_vec4s()), u32_const("WEIGHT_ROWS", piece.rows),
                  bool_const("GATED", gated), u32_const("ACTIVATE", static_cast<uint32_t>(op.gate)),
                  bool_const("HAS_Q8", shape.q8_out), u32_const("BLOCK_VALUES", shape.block_values()),
                  u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, outputs) / 4)});
      if (of_few) {
        add_consts({u32_const("CHUNK", shape.chunk)});
      } else {
        add_consts({u32_const("DEPTH", shape.depth), u32_const("PADDING", shape.padding())});
      }
    }
    launch.bindings = {views.weights,
                       views.scales,
                       x.x,
                       x.scales,
                       op.bias.valid() ? op.bias : views.weights,
                       op.y,
                       op.y_q8.valid() ? op.y_q8 : unused_binding(ctx),
                       ctx.state};
    set_costs(op, piece, launch);
    DP_CHECK(dispatch(ctx, launch));
  }
  return {};
}

}  // namespace doppler::kernels
