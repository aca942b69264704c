// Counts how often dispatches of the persistent kernel stall in a test program, and limits it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {

// A dispatch whose workgroups wait in vain has stalled. On a CPU the workgroups may be put aside for longer than its
// driver lets a loop wait: the test then tries again, since this is no error of the kernel. On a GPU at most one in a
// hundred may stall.
inline constexpr uint32_t kGpuTries = 3;
inline constexpr double kMostGpuStalls = 0.01;
inline constexpr uint32_t kCpuTries = 400;  // chosen, not measured; the next one too
inline constexpr double kMostCpuStalls = 0.9;

// Counts for all tests of this program; reported and judged at its end.
class Stalls final : public ::testing::Environment {
 public:
  void note(bool stalled) {
    ++dispatches_;
    stalls_ += stalled ? 1 : 0;
    in_a_row_ = stalled ? in_a_row_ + 1 : 0;
    most_in_a_row_ = std::max(most_in_a_row_, in_a_row_);
  }
  static bool is_cpu() { return device().caps().type == gpu::AdapterType::kCpu; }
  static uint32_t tries() { return is_cpu() ? kCpuTries : kGpuTries; }
  void TearDown() override {
    if (dispatches_ == 0) return;
    const double share = stalls_ / static_cast<double>(dispatches_);
    const double most = is_cpu() ? kMostCpuStalls : kMostGpuStalls;
    std::printf(
        "Persistent kernel: %u of %u dispatches stalled (%.2f %%, at most %.0f %% may), %u in a row.\n",
        stalls_, dispatches_, 100 * share, 100 * most, most_in_a_row_);
    EXPECT_LE(share, most);
  }

 private:
  uint32_t dispatches_ = 0, stalls_ = 0, in_a_row_ = 0, most_in_a_row_ = 0;
};

inline Stalls& stalls() {
  static Stalls* const environment = [] {
    auto made = std::make_unique<Stalls>();
    return static_cast<Stalls*>(::testing::AddGlobalTestEnvironment(made.release()));  // gtest owns it
  }();
  return *environment;
}
[[maybe_unused]] inline const Stalls& kStalls = stalls();  // before the tests start

}  // namespace doppler::kernels::testing
