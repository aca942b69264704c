// Waits for the GPU keep to the time that the caller gives, whatever the provider's own waits do.
#include <chrono>

#include "gpu/gpu_test_fixture.h"

namespace doppler::gpu {
namespace {

TEST_F(GpuTest, APollReturnsWhileTheGpuWorks) {
  constexpr char kSlow[] = R"(
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@compute @workgroup_size(1) fn main() {
  var x = state[0];
  for (var i = 0u; i < 65000u; i++) { x = x * 1664525u + 1013904223u; }
  state[0] = x;
})";
  const Buffer state = make("state", 16);
  PlanBuilder builder(device_->caps());
  const TensorView view = builder.external(state);
  builder.begin("slow", 1);
  ASSERT_TRUE(builder.dispatch(
      {.pipeline = {.label = "test.slow", .wgsl = kSlow, .layout = {BindKind::kReadWrite}, .constants = {}},
       .params = {},
       .bindings = {&view, 1},
       .grid = {.x = 4096},
       .op_label = "slow"}));
  builder.end();
  auto built = wait(builder.build(*device_, nullptr));
  ASSERT_TRUE(built) << built.error().message();
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> taken{}, polled{};
  // As many replays as take some tenths of a second here.
  for (uint32_t times = 1; taken.count() < 0.3; times *= 2) {
    ASSERT_LE(times, 1u << 20) << "the loop takes no time";
    const auto begin = Clock::now();
    submit({.plan = &built->plans[0], .times = times});
    auto reading = device_->read_buffer({state.id(), 0, 4});
    reading.start();
    const auto first = Clock::now();
    device_->poll(1000);
    polled = Clock::now() - first;
    while (!reading.done()) device_->poll(1000);
    ASSERT_TRUE(reading.take());
    taken = Clock::now() - begin;
  }
  EXPECT_LT(polled.count(), taken.count() / 2);
}

}  // namespace
}  // namespace doppler::gpu
