// The rows of the tables of this folder, for record() and for the tests that force each.
#pragma once

#include <span>

#include "kernels/low_rank/low_rank.h"
#include "kernels/variant.h"

namespace doppler::kernels {

struct LowRankShape {
  uint32_t max_rows = 1;
};
struct LowRankEntry {
  std::string_view entry;
  std::span<const gpu::BindKind> layout;
  bool is_tile = false;  // of kLowRankTileRows rows
};
struct LowRankRow : Variant<LowRankShape>, LowRankEntry {};
inline constexpr uint32_t kLowRankTileRows = 8;

std::span<const LowRankRow> low_rank_down_variants();
std::span<const LowRankRow> low_rank_up_variants();
std::span<const Variant<LowRankGate>> low_rank_gate_variants();

}  // namespace doppler::kernels
