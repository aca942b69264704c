// shape.h.
#include "kernels/sample/shape.h"

#include <algorithm>

namespace doppler::kernels {
namespace {

constexpr uint32_t kSegment = 1024;  // tokens of a workgroup: 126 to 256 workgroups for today's vocabularies
constexpr uint32_t kSegmentInvocations = 256;

}  // namespace

SampleShape sample_shape(const Context& ctx, const Sample& op) {
  return {.vocab_size = op.vocab_size,
          .segments = (op.vocab_size + kSegment - 1) / kSegment,
          .workgroup = workgroup_for(ctx.plan.caps(), kSegment, kSegmentInvocations),
          .rows = std::max(ctx.tables.sequences, op.rows),
          .slots = std::max(ctx.tables.sequences, op.rows)};
}

std::vector<gpu::WgslConst> sample_consts(const SampleShape& shape) {
  return {u32_const("VOCAB_SIZE", shape.vocab_size), u32_const("SEGMENT", kSegment),
          u32_const("SEGMENTS", shape.segments), u32_const("WORKGROUP", shape.workgroup)};
}

Result<void> dispatch_rows(Context& ctx, const SampleShape& shape, Launch launch, uint32_t groups,
                           uint64_t bytes) {
  launch.grid.x = groups;
  if (ctx.tables.sequences == 0) {
    if (shape.rows > 1) {
      launch.substitutions.emplace_back("sample/sample_place", "sample/sample_place_rows");
      launch.substitutions.emplace_back("sample/sample_place_many", "sample/sample_place_rows");
      launch.grid.y = shape.rows;
    }
    launch.fixed_bytes = shape.rows * bytes;
    return dispatch(ctx, launch);
  }
  add_tables(launch, ctx.tables);
  launch.substitutions.emplace_back("sample/sample_place", "sample/sample_place_many");
  launch.substitutions.emplace_back("sample/sample_stops", "sample/sample_stops_many");
  if (ctx.max_rows <= shape.rows) {
    launch.grid.rows_axis = 1;
    launch.grid.rows_per_group = 1;
    launch.bytes = bytes;
  } else {
    launch.grid.y = shape.rows;
    launch.fixed_bytes = shape.rows * bytes;
  }
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
