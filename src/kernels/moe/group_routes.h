// The slots of a step's rows by expert, so that a product unpacks an expert's weights once for all rows that are sent
// to it. A slot is row * n_used + its place among the row's experts. u32, as it lies in GPU memory:
//   4 words: tiles and places in use, 0, 0
//   tiles x 4 words: expert, its first place, places, 0; after those in use: 0 places
//   places x 1 word: a slot, or kNoSlot: an expert's slots begin at a multiple of kGroupAlign places
// The order of an expert's slots is any. A product's result for a row does not depend on it.
#pragma once

#include <algorithm>

#include "kernels/moe/routes.h"

namespace doppler::kernels {

inline constexpr uint32_t kGroupRows = 64;   // places of a tile at most
inline constexpr uint32_t kGroupAlign = 16;  // rows of a matrix unit's fragment
inline constexpr uint32_t kNoSlot = 0xFFFFFFFFu;

// Room for the worst routes of so many rows.
struct GroupSizes {
  uint32_t tiles = 0, places = 0;

  GroupSizes(const Routes& routes, uint32_t max_rows) {
    const uint32_t slots = max_rows * routes.n_used;
    const uint32_t experts = std::min(routes.n_experts, slots);
    tiles = experts + slots / kGroupRows;
    places = (slots + experts * (kGroupAlign - 1) + kGroupAlign - 1) / kGroupAlign * kGroupAlign;
  }
  uint64_t bytes() const { return (4 + uint64_t{4} * tiles + places) * sizeof(uint32_t); }
};

struct GroupRoutes {
  Routes routes;
  TensorView groups;  // GroupSizes::bytes()
};
Result<void> record(Context& ctx, const GroupRoutes& op);

}  // namespace doppler::kernels
