#include "kernels/low_rank/variants.h"

#include <array>

#include "kernels/low_rank/low_rank_down_portable.wgsl.h"
#include "kernels/low_rank/low_rank_down_subgroup.wgsl.h"
#include "kernels/low_rank/low_rank_down_tile.wgsl.h"
#include "kernels/low_rank/low_rank_up.wgsl.h"
#include "kernels/low_rank/low_rank_up_tile.wgsl.h"

namespace doppler::kernels {
namespace {

// Tiles have too few workgroups for the rows of decode steps (docs/design/adapters.md). We have measured 32 rows.
std::string refuse_few_rows(const LowRankShape& shape, const gpu::Caps& caps) {
  constexpr uint32_t kWorkgroup = 256;
  if (caps.max_invocations < kWorkgroup) return "the device has no workgroups of 256";
  if (shape.max_rows > kMostLowRankFewRows) return "";
  return format_text("it is for more than %u rows", kMostLowRankFewRows);
}

const std::array<LowRankRow, 3> kDownRows = {{
    {{.name = "low_rank_down.tile", .refuse = refuse_few_rows},
     {.entry = "low_rank/low_rank_down_tile", .layout = wgsl::low_rank_down_tile::kLayout, .is_tile = true}},
    {{.name = "low_rank_down.subgroup", .lane = Lane::kSubgroups, .needs = kNeedSubgroups},
     {.entry = "low_rank/low_rank_down_subgroup", .layout = wgsl::low_rank_down_subgroup::kLayout}},
    {{.name = "low_rank_down.portable"},
     {.entry = "low_rank/low_rank_down_portable", .layout = wgsl::low_rank_down_portable::kLayout}},
}};
const std::array<LowRankRow, 2> kUpRows = {{
    {{.name = "low_rank_up.tile", .refuse = refuse_few_rows},
     {.entry = "low_rank/low_rank_up_tile", .layout = wgsl::low_rank_up_tile::kLayout, .is_tile = true}},
    {{.name = "low_rank_up.portable"},
     {.entry = "low_rank/low_rank_up", .layout = wgsl::low_rank_up::kLayout}},
}};
constexpr Variant<LowRankGate> kGateRows[] = {{.name = "low_rank_gate.portable"}};

}  // namespace

std::span<const LowRankRow> low_rank_down_variants() { return kDownRows; }
std::span<const LowRankRow> low_rank_up_variants() { return kUpRows; }
std::span<const Variant<LowRankGate>> low_rank_gate_variants() { return kGateRows; }

}  // namespace doppler::kernels
