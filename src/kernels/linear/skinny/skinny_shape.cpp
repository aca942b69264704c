// skinny_shape.h.
#include "kernels/linear/skinny/skinny_shape.h"

#include <bit>
#include <vector>

#include "kernels/tuning.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnitOfQ8 = 32, kUnitOfF32 = 8;   // columns, of skinny_unit_q8 and skinny_unit_f32
constexpr uint32_t kVec4sOfQ8 = 3, kVec4sOfF32 = 2;  // that a unit of x takes
constexpr uint32_t kHalf = kTileRows / 2;
constexpr uint32_t kManyRows = 8;  // the batch of 5 to 8 rows of x

// Rows of x that a workgroup takes: all of them, but in plans of more than matmul_skinny's.
uint32_t batch_of(const Context& ctx) {
  return std::min(kMaxSkinnyRows, std::max(2u, std::bit_ceil(ctx.max_rows)));
}

constexpr uint32_t kMultiprocessors = 132;  // of the H100 and the H200, on which these shapes were measured
constexpr uint32_t kMostSplits = 4;

// Long columns of not many weight rows leave a large GPU waiting. Splits of the columns, whose sums the norm behind the residual
// adds up, make more workgroups: as many as two for each multiprocessor. H100, streams behind 512 tokens, tok/s with and
// without: 8B (4096 x 14336) 4 streams 1,232 and 1,215; 1B (2048 x 8192) 4 streams 4,250 and 4,080, 8 streams 6,980 and
// 6,370. Columns of 4096 and less lose with 4 streams.
bool may_split(const SkinnyShape& shape) {
  constexpr uint32_t kLeastUnits = 256;
  return !shape.gated && shape.units >= kLeastUnits;
}

uint32_t few_splits(uint32_t groups) {
  return std::bit_floor(std::clamp(2 * kMultiprocessors / groups, 1u, kMostSplits));
}

// Weight rows of an invocation. Each reads all units of x of its columns from workgroup memory: with 5 to 8 rows of x as many
// weight rows share what is read as leave a workgroup to each multiprocessor. H100, products of a step of 8 rows, ms
// (linear_chain_bench): 8B 3.51, with four rows of gate and up 3.37, with two of down (its splits four) 3.26; 1B 0.849, with two
// of gate and up 0.834, with four 0.846. 2 and 4 rows of x gain nothing.
uint32_t few_pair(SkinnyShape shape, uint32_t least, uint32_t most, uint32_t outputs) {
  const uint32_t splits = may_split(shape) ? kMostSplits : 1;
  for (shape.pair = most; shape.pair > least; shape.pair /= 2) {
    if (outputs / shape.group_rows() * splits > kMultiprocessors) break;
  }
  return shape.pair;
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
// subgroups the better up to 16 with few rows of x, 8 with many. H100, 8 streams of an 8B model, tok/s: q, k and v in 96
// workgroups that make two weight rows an invocation 1,800, in 192 of one 1,877.
SkinnyShape few_shape(Context& ctx, const Product& op) {
  constexpr uint32_t kSlices = 16, kSlicesOfMany = 8;
  // Of x in workgroup memory, where each multiprocessor has a workgroup, and where some have several. H100, 4 streams of an 8B
  // model, tok/s, in 12 instead of 24 KiB: q, k and v (192 workgroups) 1,196 to 1,216, output (128) 1,196 to 1,189.
  constexpr uint32_t kBytesOfX = 24576, kBytesOfShared = 12288;
  const gpu::Caps& caps = ctx.plan.caps();
  SkinnyShape shape{.units = op.weight.k / kUnitOfQ8,
                    .batch = batch_of(ctx),
                    .gated = op.gate != ActivationFn::kNone,
                    .q8_out = op.y_q8.valid()};
  const uint32_t outputs = op.weight.pieces.front().rows / (shape.gated ? 2 : 1) + op.second_n();
  const auto groups = [&] { return (outputs + shape.group_rows() - 1) / shape.group_rows(); };
  const bool many = shape.batch >= kManyRows;
  const uint32_t least = shape.gated ? 2 : 1;
  // Blocks of gated outputs are made of whole workgroups' outputs.
  const uint32_t most = !many || (shape.gated && outputs % (2 * shape.rows) != 0) ? 2 : kMostPair;
  shape.pair = least;
  if (op.second == nullptr) {
    std::vector<uint32_t> alternatives;
    for (uint32_t pair = least; pair <= most; pair *= 2) alternatives.push_back(pair);
    const uint32_t standard = many ? few_pair(shape, least, most, outputs) : least;
    shape.pair = tunable(ctx.policy, op.choice, "pair", standard, std::move(alternatives));
    if (!shape.gated) {
      const uint32_t splits = may_split(shape) ? few_splits(groups()) : 1;
      shape.splits = tunable(ctx.policy, op.choice, "splits", splits, {1, 2, 4, 8});
    }
  }
  shape.slices = tunable(ctx.policy, op.choice, "slices", many ? kSlicesOfMany : kSlices, {1, 2, 4, 8, 16});
  const uint32_t fitting =
      std::min({shape.units, caps.max_invocations / shape.rows, caps.max_workgroup_size_x / shape.rows});
  while (shape.slices > std::max(1u, fitting)) shape.slices /= 2;
  // The next unit of four weight rows takes the registers of two units of two.
  shape.depth = shape.pair == kMostPair ? 1 : 2;
  const uint32_t turn = shape.depth * shape.slices;  // units of a turn of the loop
  const auto turns_of = [&](uint32_t units) { return (units + turn - 1) / turn; };
  shape.split_units = turns_of((shape.units + shape.splits - 1) / shape.splits) * turn;
  shape.splits = (shape.units + shape.split_units - 1) / shape.split_units;
  const uint32_t wanted = groups() * shape.splits > kMultiprocessors ? kBytesOfShared : kBytesOfX;
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
