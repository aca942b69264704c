// shape.h.
#include "kernels/sample/shape.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace doppler::kernels {
namespace {

constexpr uint32_t kSegment = 1024;  // tokens of a workgroup: 126 to 256 workgroups for today's vocabularies
constexpr uint32_t kSegmentInvocations = 256;

using Fragment = std::pair<std::string_view, std::string_view>;
constexpr Fragment kOfMany[] = {{"sample/sample_place", "sample/sample_place_many"},
                                {"sample/sample_stops", "sample/sample_stops_many"}};
constexpr Fragment kOfDrafts[] = {{"sample/sample_place", "sample/sample_place_drafts"},
                                  {"sample/sample_place_many", "sample/sample_place_drafts"},
                                  {"sample/sample_stops", "sample/sample_stops_drafts"},
                                  {"sample/logprobs_place", "sample/logprobs_place_drafts"}};

}  // namespace

SampleShape sample_shape(const Context& ctx, const Sample& op) {
  return {.vocab_size = op.vocab_size,
          .segments = (op.vocab_size + kSegment - 1) / kSegment,
          .workgroup = workgroup_for(ctx.plan.caps(), kSegment, kSegmentInvocations),
          .rows = op.rows > 1 ? op.rows : std::max(ctx.tables.sequences, 1u),
          .has_own = op.rows > 1};
}

std::vector<gpu::WgslConst> sample_consts(const SampleShape& shape) {
  return {u32_const("VOCAB_SIZE", shape.vocab_size), u32_const("SEGMENT", kSegment),
          u32_const("SEGMENTS", shape.segments), u32_const("WORKGROUP", shape.workgroup)};
}

Result<void> dispatch_rows(Context& ctx, const SampleShape& shape, Launch launch, uint32_t groups,
                           uint64_t bytes) {
  launch.grid.x = groups;
  if (ctx.tables.sequences == 0) {
    if (shape.has_own) {
      launch.substitutions.emplace_back("sample/sample_place", "sample/sample_place_rows");
      launch.substitutions.emplace_back("sample/sample_place_many", "sample/sample_place_rows");
      launch.grid.y = shape.rows;
    }
    launch.fixed_bytes = shape.rows * bytes;
    return dispatch(ctx, launch);
  }
  add_tables(launch, ctx.tables);
  const std::span<const Fragment> fragments =
      shape.has_own ? std::span<const Fragment>(kOfDrafts) : std::span<const Fragment>(kOfMany);
  launch.substitutions.insert(launch.substitutions.end(), fragments.begin(), fragments.end());
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
