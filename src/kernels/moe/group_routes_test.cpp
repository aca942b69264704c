// The slots of rows by expert: each slot once among its expert's places, tiles that cover them, and no slot after
// those.
#include "kernels/moe/group_routes.h"

#include "kernels/moe/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kExperts = 9, kUsed = 2, kMaxRows = 200;

void expect_groups(const std::vector<uint32_t>& routes, uint32_t rows) {
  KernelRun run({}, kMaxRows);
  const Routes op{.view = run.input(routes), .n_experts = kExperts, .n_used = kUsed};
  const GroupSizes sizes(op, kMaxRows);
  const TensorView groups = run.output(sizes.bytes());
  ASSERT_TRUE(
      run.record([&](Context& ctx) { return record(ctx, GroupRoutes{.routes = op, .groups = groups}); }));
  run.replay(rows);
  const std::vector<uint32_t> got = run.read<uint32_t>(groups, sizes.bytes() / 4);
  const uint32_t* places = &got[4 + 4 * size_t{sizes.tiles}];
  std::vector<bool> seen(size_t{rows} * kUsed);
  uint32_t next_place = 0, slots = 0;
  for (uint32_t tile = 0; tile < sizes.tiles; ++tile) {
    const uint32_t* entry = &got[4 * (1 + size_t{tile})];
    if (tile >= got[0]) {
      EXPECT_EQ(entry[2], 0u) << "tile " << tile << " of " << got[0];
      continue;
    }
    EXPECT_EQ(entry[1], next_place);
    EXPECT_LE(entry[2], kGroupRows);
    for (uint32_t i = 0; i < entry[2]; ++i, ++slots) {
      const uint32_t slot = places[entry[1] + i];
      ASSERT_LT(slot, rows * kUsed);
      EXPECT_FALSE(seen[slot]) << slot;
      seen[slot] = true;
      EXPECT_EQ(routes[slot / kUsed * 2 * kUsed + slot % kUsed], entry[0]);
    }
    next_place += (entry[2] + kGroupAlign - 1) / kGroupAlign * kGroupAlign;
    for (uint32_t i = entry[1] + entry[2]; i < next_place; ++i) EXPECT_EQ(places[i], kNoSlot);
  }
  EXPECT_EQ(got[1], next_place);
  EXPECT_EQ(slots, rows * kUsed);
}

TEST(GroupRoutes, EverySlotIsWithItsExpert) {
  Random random(41);
  std::vector<uint32_t> routes(size_t{kMaxRows} * 2 * kUsed);
  for (size_t row = 0; row < kMaxRows; ++row) {
    const uint32_t first = static_cast<uint32_t>(random.below(kExperts - 1));  // no row uses the last
    routes[row * 2 * kUsed] = first;
    routes[row * 2 * kUsed + 1] = (first + 1) % (kExperts - 1);
  }
  expect_groups(routes, 3);
  expect_groups(routes, kMaxRows);
  // All rows are sent to the same two: tiles that are full, and experts without rows.
  for (size_t row = 0; row < kMaxRows; ++row) {
    routes[row * 2 * kUsed] = kExperts - 1;
    routes[row * 2 * kUsed + 1] = 0;
  }
  expect_groups(routes, 128);
}

}  // namespace
}  // namespace doppler::kernels::testing
