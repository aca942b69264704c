// The probe gives some number of workgroups, the same within reason each time, and never hangs.
#include "kernels/persistent/probe.h"

#include <thread>

#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

TEST(PersistentProbe, FindsHowManyWorkgroupsAreCoResident) {
  const auto first = gpu::run_to_completion(device(), count_co_resident(device()));
  ASSERT_TRUE(first) << first.error().message();
  std::printf("workgroups that are co-resident: %u\n", *first);
  EXPECT_GE(*first, 1u);
  EXPECT_LT(*first, 4096u);  // a device that ran all it was given would have no limit
  // A CPU device has a thread for each; one that gives up makes room for others, which do not count.
  if (device().caps().type == gpu::AdapterType::kCpu) {
    EXPECT_LE(*first, std::thread::hardware_concurrency());
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
