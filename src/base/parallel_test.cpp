// parallel_for: every piece once, whatever the number of pieces.
#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace doppler {
namespace {

TEST(Parallel, DoesEachPieceOnce) {
  for (const size_t count : {0u, 1u, 7u, 1000u}) {
    std::vector<std::atomic<int>> done(count);
    parallel_for(count, [&](size_t i) { ++done[i]; });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(done[i], 1) << i << " of " << count;
  }
}

}  // namespace
}  // namespace doppler
