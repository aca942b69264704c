// skinny_shape.h.
#include "kernels/linear/skinny/skinny_shape.h"

#include <bit>

#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnitOfQ8 = 32, kUnitOfF32 = 8;   // columns, of skinny_unit_q8 and skinny_unit_f32
constexpr uint32_t kVec4sOfQ8 = 3, kVec4sOfF32 = 2;  // that a unit of x takes
constexpr uint32_t kHalf = kTileRows / 2;

// Rows of x that a workgroup takes: all of them, but in plans of more than matmul_skinny's.
uint32_t batch_of(const Context& ctx) {
  return std::min(kMaxSkinnyRows, std::max(2u, std::bit_ceil(ctx.max_rows)));
}

// Long columns of not many weight rows leave most of a large GPU waiting: a workgroup's x then comes in many chunks. With four
// splits of the columns, whose sums the norm behind the residual adds up, there are four times as many workgroups. H100, 8 rows,
// 4096 x 14336 of an 8B model: 1,068 to 941 us a step with dispatches that add up (linear_chain_bench), 8 streams 1,712 to 1,777
// tok/s. 2 and 4 rows lose 1 %.
uint32_t few_splits(const SkinnyShape& shape, uint32_t outputs) {
  constexpr uint32_t kSplits = 4, kLeastRows = 8, kLeastGroups = 64, kLeastUnits = 96;
  const bool pays = shape.batch >= kLeastRows && outputs / (2 * shape.rows) >= kLeastGroups &&
                    shape.units / kSplits >= kLeastUnits;
  return pays ? kSplits : 1;
}

}  // namespace

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
// subgroups the better up to 16 with few rows of x, 8 with many. Two weight rows an invocation only where the workgroups still
// are enough: H100, 8 streams of an 8B model, q, k and v in 96 of two 1,800 tok/s, in 192 of one 1,877.
SkinnyShape few_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kSlices = 16, kSlicesOfMany = 8, kSlicesOfSplit = 4;
  constexpr uint32_t kManyRows = 8, kEnoughWorkgroups = 128;
  // Of x in workgroup memory: several workgroups share a multiprocessor. H100, 8B: 8 streams 1,754 tok/s with the more, 1,772
  // with the less, 2 streams 651 and 645.
  constexpr uint32_t kBytesOfX = 24576, kBytesOfMany = 12288;
  const gpu::Caps& caps = ctx.plan.caps();
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8,
                    .batch = batch_of(ctx),
                    .pair = 2,
                    .gated = op.gate != ActivationFn::kNone,
                    .q8_out = op.y_q8.valid()};
  const bool many = shape.batch >= kManyRows;
  const uint32_t outputs = op.weight.pieces.front().rows + op.second_n();
  bool is_split = false;
  if (!shape.gated) {
    if (op.second == nullptr) {
      shape.splits = tunable(ctx.policy, op.choice, "splits", few_splits(shape, outputs), {1, 2, 4, 8});
    }
    is_split = shape.splits > 1;
    const bool two = is_split || (many && outputs / (2 * shape.rows) >= kEnoughWorkgroups);
    shape.pair = tunable(ctx.policy, op.choice, "pair", two ? 2 : 1, {1, 2});
  }
  shape.slices = tunable(ctx.policy, op.choice, "slices",
                         is_split ? kSlicesOfSplit
                         : many   ? kSlicesOfMany
                                  : kSlices,
                         {1, 2, 4, 8, 16});
  const uint32_t fitting =
      std::min({shape.units, caps.max_invocations / shape.rows, caps.max_workgroup_size_x / shape.rows});
  while (shape.slices > std::max(1u, fitting)) shape.slices /= 2;
  const uint32_t turn = 2 * shape.slices;  // units of a turn of the loop
  const auto turns_of = [&](uint32_t units) { return (units + turn - 1) / turn; };
  shape.split_units = turns_of((shape.units + shape.splits - 1) / shape.splits) * turn;
  shape.splits = (shape.units + shape.split_units - 1) / shape.split_units;
  const uint32_t allowed =
      std::min(many ? kBytesOfMany : kBytesOfX, caps.max_workgroup_bytes - 4 * shape.block_values());
  const uint32_t turns = std::max(1u, allowed / shape.unit_bytes() / turn);
  shape.chunk = std::min(turns_of(shape.split_units), turns) * turn;
  return shape;
}

// lavapipe, 2 cores: one subgroup of 8 a workgroup, as in matvec.cpp.
SkinnyShape cpu_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kWorkgroup = 8;
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8, .batch = batch_of(ctx), .rows = kWorkgroup};
  shape.pair = tunable(ctx.policy, op.choice, "pair", 1, {1, 2});
  return shape;
}

}  // namespace doppler::kernels
