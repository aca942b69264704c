// dispatch.h: composition and recording of one launch.
#include "kernels/common/dispatch.h"

#include <algorithm>
#include <bit>

namespace doppler::kernels {

namespace {

gpu::Grid fixed_grid(const Context& ctx, gpu::Grid grid) {
  if (ctx.fixed_rows == 0 || grid.rows_per_group == 0) return grid;
  uint32_t* const axes[] = {&grid.x, &grid.y, &grid.z};
  *axes[grid.rows_axis] = (ctx.fixed_rows + grid.rows_per_group - 1) / grid.rows_per_group;
  grid.rows_per_group = 0;
  return grid;
}

}  // namespace

Result<void> dispatch(Context& ctx, const Launch& launch) {
  DP_TRY(std::string wgsl, gpu::compose_wgsl(launch.entry, ctx.plan.caps(),
                                             {.f16 = launch.f16,
                                              .subgroups = launch.subgroups,
                                              .matrix = launch.matrix,
                                              .consts = launch.consts,
                                              .substitutions = launch.substitutions}));
  gpu::DispatchDesc desc;
  desc.pipeline.label = launch.variant;
  desc.pipeline.wgsl = std::move(wgsl);
  desc.pipeline.layout.assign(launch.layout.begin(), launch.layout.end());
  desc.pipeline.trusted = true;
  desc.params = launch.params;
  desc.bindings = launch.bindings;
  desc.grid = fixed_grid(ctx, launch.grid);
  desc.op_label = ctx.op_label;
  desc.bytes = launch.bytes;
  desc.fixed_bytes = launch.fixed_bytes;
  desc.operations = launch.operations;
  desc.keys = launch.keys;
  DP_CHECK_WHILE(ctx.plan.dispatch(desc), "recording %s for %s", desc.pipeline.label.c_str(),
                 ctx.op_label.c_str());
  return {};
}

TensorView unused_binding(Context& ctx) { return ctx.plan.scratch("unused", kUnusedBytes); }

Result<void> check_view(const TensorView& view, uint64_t bytes, std::string_view what) {
  const std::string name(what);
  if (!view.valid()) return fail(ErrorKind::kInternal, "%s is missing.", name.c_str());
  if (view.bytes < bytes) {
    return fail(ErrorKind::kInternal, "%s has %llu bytes; %llu are needed.", name.c_str(),
                static_cast<unsigned long long>(view.bytes), static_cast<unsigned long long>(bytes));
  }
  return {};
}

uint32_t workgroup_for(const gpu::Caps& caps, uint64_t items, uint32_t most) {
  constexpr uint32_t kSmallest = 32, kMostOnCpu = 64;
  uint64_t limit = std::min({most, caps.max_invocations, caps.max_workgroup_size_x});
  if (caps.type == gpu::AdapterType::kCpu) limit = std::min<uint64_t>(limit, kMostOnCpu);
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::bit_ceil(std::max<uint64_t>(items, 1)), kSmallest, std::bit_floor(limit)));
}

}  // namespace doppler::kernels
