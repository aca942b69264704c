// Records the dispatches of ceiling_parts.h.
#include "kernels/ceiling/ceiling_parts.h"

#include "kernels/ceiling/ceiling_dp4a.wgsl.h"
#include "kernels/ceiling/ceiling_empty.wgsl.h"
#include "kernels/ceiling/ceiling_f32.wgsl.h"
#include "kernels/ceiling/ceiling_fill.wgsl.h"
#include "kernels/ceiling/ceiling_matrix.wgsl.h"
#include "kernels/ceiling/ceiling_read.wgsl.h"
#include "kernels/common/dispatch.h"

namespace doppler::kernels {
namespace {

constexpr uint64_t kVectorBytes = 16;
constexpr uint64_t kOperationsPerRound = 64;  // of an invocation, as the two WGSL files spell them out
constexpr uint64_t kPerMultiplyAdd = 2, kPerDot = 8;
constexpr uint64_t kFragment = 16, kProducts = 4;  // of a round of ceiling_matrix.wgsl

uint64_t invocations(const CeilingShape& shape) { return uint64_t{shape.groups} * shape.workgroup; }

}  // namespace

Result<void> record(Context& ctx, const CeilingFill& op) {
  Launch launch{
      .variant = "ceiling.fill", .entry = "ceiling/ceiling_fill", .layout = wgsl::ceiling_fill::kLayout};
  launch.consts = {u32_const("WORKGROUP", op.shape.workgroup), u32_const("GROUPS", op.shape.groups),
                   u32_const("VECTORS", op.buffer.bytes / kVectorBytes)};
  launch.bindings = {op.buffer};
  launch.grid = {.x = op.shape.groups};
  launch.bytes = op.buffer.bytes;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const CeilingRead& op) {
  const uint64_t per_loop = invocations(op.shape) * kReadUnroll * kVectorBytes;
  if (op.buffer.bytes == 0 || op.buffer.bytes % per_loop != 0) {
    return fail(ErrorKind::kInternal, "A buffer of %llu bytes is no multiple of %llu.",
                static_cast<unsigned long long>(op.buffer.bytes), static_cast<unsigned long long>(per_loop));
  }
  DP_CHECK(check_view(op.out, invocations(op.shape) * kVectorBytes, "out of ceiling_read"));
  const uint64_t vectors = op.buffer.bytes / kVectorBytes;
  Launch launch{
      .variant = "ceiling.read", .entry = "ceiling/ceiling_read", .layout = wgsl::ceiling_read::kLayout};
  launch.consts = {u32_const("WORKGROUP", op.shape.workgroup), u32_const("LOOPS", op.buffer.bytes / per_loop),
                   u32_const("GROUP_STEP", op.contiguous ? vectors / op.shape.groups : op.shape.workgroup),
                   u32_const("STEP", op.contiguous ? op.shape.workgroup : invocations(op.shape))};
  launch.bindings = {op.buffer, op.out};
  launch.grid = {.x = op.shape.groups};
  launch.bytes = op.buffer.bytes;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const CeilingArithmetic& op) {
  DP_CHECK(check_view(op.out, invocations(op.shape) * 4, "out of ceiling arithmetic"));
  Launch launch{
      .variant = "ceiling.f32", .entry = "ceiling/ceiling_f32", .layout = wgsl::ceiling_f32::kLayout};
  if (op.dp4a) {
    launch.variant = "ceiling.dp4a";
    launch.entry = "ceiling/ceiling_dp4a";
    launch.layout = wgsl::ceiling_dp4a::kLayout;
  }
  launch.consts = {u32_const("WORKGROUP", op.shape.workgroup), u32_const("ROUNDS", op.shape.rounds)};
  launch.bindings = {op.seed, op.out};
  launch.grid = {.x = op.shape.groups};
  launch.operations =
      invocations(op.shape) * op.shape.rounds * kOperationsPerRound * (op.dp4a ? kPerDot : kPerMultiplyAdd);
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const CeilingMatrix& op) {
  const uint32_t subgroups = op.shape.workgroup / ctx.plan.caps().subgroup_min;
  const uint64_t products = uint64_t{op.shape.groups} * subgroups * kProducts;
  DP_CHECK(check_view(op.seed, (1 + kProducts) * kFragment * kFragment * 2, "seed of ceiling_matrix"));
  DP_CHECK(check_view(op.out, products * kFragment * kFragment * 4, "out of ceiling_matrix"));
  Launch launch{.variant = "ceiling.matrix",
                .entry = "ceiling/ceiling_matrix",
                .layout = wgsl::ceiling_matrix::kLayout};
  launch.matrix = true;
  launch.consts = {u32_const("WORKGROUP", op.shape.workgroup), u32_const("SUBGROUPS", subgroups),
                   u32_const("ROUNDS", op.shape.rounds)};
  launch.bindings = {op.seed, op.out};
  launch.grid = {.x = op.shape.groups};
  launch.operations = products * op.shape.rounds * kPerMultiplyAdd * kFragment * kFragment * kFragment;
  return dispatch(ctx, launch);
}

Result<void> record(Context& ctx, const CeilingEmpty& op) {
  Launch launch{
      .variant = "ceiling.empty", .entry = "ceiling/ceiling_empty", .layout = wgsl::ceiling_empty::kLayout};
  launch.bindings = {op.counter};
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
