// skinny_shape.h.
#include "kernels/linear/skinny/skinny_shape.h"

#include <bit>
#include <vector>

#include "kernels/linear/measured.h"
#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnitOfQ8 = 32, kUnitOfF32 = 8;   // columns, of skinny_unit_q8 and skinny_unit_f32
constexpr uint32_t kVec4sOfQ8 = 3, kVec4sOfF32 = 2;  // that a unit of x takes
constexpr uint32_t kSkinnyShapeHalf = kTileRows / 2;
constexpr uint32_t kSkinnyShapeManyRows = 8;  // the batch of 5 to 8 rows of x

// Rows of x that a workgroup takes: all rows, but in plans of more than matmul_skinny's.
uint32_t batch_of(const Context& ctx) {
  return std::min(kMaxSkinnyRows, std::max(2u, std::bit_ceil(ctx.max_rows)));
}

constexpr uint32_t kSkinnyShapeMostSplits = 4;

// Long columns of not many weight rows leave a large GPU waiting. Splits of the columns make more workgroups; the norm
// after the residual adds up their sums.
bool may_split(const SkinnyShape& shape) {
  constexpr uint32_t kLeastUnits = 256;
  return !shape.gated && shape.units >= kLeastUnits;
}

uint32_t few_splits(const gpu::Caps& caps, uint32_t groups) {
  return std::bit_floor(std::clamp(kSplitSkinny.of(caps) / groups, 1u, kSkinnyShapeMostSplits));
}

// Weight rows of an invocation. Each reads all units of x of its columns from workgroup memory. With 5 to 8 rows of x,
// weight rows share such a read: as many rows as still leave a workgroup to each compute unit.
uint32_t few_pair(const gpu::Caps& caps, SkinnyShape shape, uint32_t least, uint32_t most, uint32_t outputs) {
  const uint32_t splits = may_split(shape) ? kSkinnyShapeMostSplits : 1;
  for (shape.pair = most; shape.pair > least; shape.pair /= 2) {
    if (outputs / shape.group_rows() * splits > kSharedSkinny.of(caps)) break;
  }
  return shape.pair;
}

}  // namespace

// Every workgroup reads all of x, so that the more weight rows it makes the better, as long as there are workgroups for
// all compute units, nearly.
SkinnyShape skinny_shape(Context& ctx, const Product& op) {
  const Weight& weight = op.weight;
  const bool q8 = op.row.q8;
  constexpr uint32_t kInvocations = 512, kInvocationsOfMany = 256;  // many sums: many registers
  constexpr uint32_t kManySums = 16;
  constexpr uint32_t kInvocationsOfFull = 128;  // if the workgroups fill a device
  constexpr uint32_t kMostBytes = 32768;  // of workgroup memory: several workgroups share a compute unit
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t enough = kEnoughSkinny.of(caps);
  const bool gated = op.is_gated();
  const uint32_t outputs = weight.pieces.front().rows / (gated ? 2 : 1);
  SkinnyShape shape{.units = weight.k / (q8 ? kUnitOfQ8 : kUnitOfF32),
                    .batch = batch_of(ctx),
                    .x_vec4s = q8 ? kVec4sOfQ8 : kVec4sOfF32,
                    .gated = gated,
                    .q8_out = op.outputs().q8.valid()};
  const bool whole = outputs / kTileRows >= enough;
  shape.rows = tunable(ctx.policy, op.choice, "rows", whole ? kTileRows : kSkinnyShapeHalf,
                       {kSkinnyShapeHalf, kTileRows});
  shape.pair = 2;
  if (!gated) {
    const bool two = q8 && outputs / (2 * kTileRows) >= enough;
    shape.pair = tunable(ctx.policy, op.choice, "pair", two ? 2 : 1, {1, 2});
  }
  const uint32_t invocations = outputs / shape.group_rows() >= kFullSkinny.of(caps) ? kInvocationsOfFull
                               : shape.batch * shape.pair >= kManySums              ? kInvocationsOfMany
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

SkinnyShape few_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kBytesOfX = 2 * kBytesOfShared;  // in workgroup memory
  const gpu::Caps& caps = ctx.plan.caps();
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8,
                    .batch = batch_of(ctx),
                    .gated = op.is_gated(),
                    .q8_out = op.outputs().q8.valid()};
  const uint32_t outputs = op.weight.pieces.front().rows / (shape.gated ? 2 : 1) + op.second_n();
  const auto groups = [&] { return (outputs + shape.group_rows() - 1) / shape.group_rows(); };
  const bool many = shape.batch >= kSkinnyShapeManyRows;
  const uint32_t least = shape.gated ? 2 : 1;
  // Blocks of gated outputs are made of whole workgroups' outputs.
  const uint32_t most = !many || (shape.gated && outputs % (2 * shape.rows) != 0) ? 2 : kMostPair;
  shape.pair = least;
  if (op.second == nullptr) {
    std::vector<uint32_t> alternatives;
    for (uint32_t pair = least; pair <= most; pair *= 2) alternatives.push_back(pair);
    const uint32_t standard = many ? few_pair(caps, shape, least, most, outputs) : least;
    shape.pair = tunable(ctx.policy, op.choice, "pair", standard, std::move(alternatives));
    if (!shape.gated) {
      const uint32_t splits = may_split(shape) ? few_splits(caps, groups()) : 1;
      shape.splits = tunable(ctx.policy, op.choice, "splits", splits, {1, 2, 4, 8});
    }
  }
  shape.slices =
      tunable(ctx.policy, op.choice, "slices", many ? kSlicesOfMany : kSlicesOfFew, {1, 2, 4, 8, 16});
  const uint32_t fitting =
      std::min({shape.units, caps.max_invocations / shape.rows, caps.max_workgroup_size_x / shape.rows});
  while (shape.slices > std::max(1u, fitting)) shape.slices /= 2;
  // The next unit of four weight rows takes the registers of two units of two.
  shape.depth = shape.pair == kMostPair ? 1 : 2;
  const uint32_t turn = shape.depth * shape.slices;  // units of a turn of the loop
  const auto turns_of = [&](uint32_t units) { return (units + turn - 1) / turn; };
  shape.split_units = turns_of((shape.units + shape.splits - 1) / shape.splits) * turn;
  shape.splits = (shape.units + shape.split_units - 1) / shape.split_units;
  const uint32_t wanted = groups() * shape.splits > kSharedSkinny.of(caps) ? kBytesOfShared.value : kBytesOfX;
  const uint32_t allowed = std::min(wanted, caps.max_workgroup_bytes - 4 * shape.block_values());
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
