// Tests positions against sums made by hand: a step that begins after others, rows of both types, one after the last
// row.
#include "kernels/embed/positions.h"

#include <bit>

#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

TEST(Positions, EveryVariantMatchesTheSums) {
  constexpr uint32_t kMaxRows = 3, kUsed = 2, kN = 77, kPositions = 9, kTypes = 2, kPos = 4;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kN, 1),
                           positions = random_floats(size_t{kPositions} * kN, 2),
                           types = random_floats(size_t{kTypes} * kN, 3);
  const std::vector<uint32_t> ids = {1, 0, 1};
  for_each_variant("positions", positions_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const Positions op{.x = run.inout(x),
                       .positions = run.input(positions),
                       .types = run.input(types),
                       .type_ids = run.input(ids),
                       .n = kN,
                       .n_positions = kPositions,
                       .n_types = kTypes};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.state.pos = kPos;
    run.replay(kUsed);
    const std::vector<float> got = run.read<float>(op.x, x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t row = i / kN, column = i % kN;
      const double added = double{positions[(kPos + row) * kN + column]} + types[ids[row] * kN + column];
      ASSERT_NEAR(got[i], row < kUsed ? x[i] + added : x[i], 1e-6) << "row " << row << " column " << column;
    }
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
