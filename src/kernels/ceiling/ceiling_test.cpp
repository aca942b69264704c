// The kernels that ceilings are measured with do the work they are credited with: every word is read, every
// multiplication happens; and the figures are plausible.
#include "kernels/ceiling/ceiling.h"

#include "base/half.h"
#include "kernels/ceiling/ceiling_parts.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

TEST(Ceiling, TheReadKernelReadsEveryWordOnce) {
  constexpr CeilingShape kShape{.groups = 3, .workgroup = 32};
  constexpr uint32_t kLoops = 5, kVectors = 3 * 32 * kReadUnroll * kLoops;
  for (const bool contiguous : {false, true}) {
    KernelRun run;
    const TensorView buffer = run.output(kVectors * 16);
    const TensorView out = run.output(3 * 32 * 16);
    const CeilingFill fill{.buffer = buffer.sub(0, kVectors * 16), .shape = kShape};
    const CeilingRead read{.buffer = fill.buffer, .out = out, .shape = kShape, .contiguous = contiguous};
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(record(ctx, fill));
      return record(ctx, read);
    }));
    run.replay();
    uint32_t sum = 0;
    for (const uint32_t value : run.read<uint32_t>(out, 3 * 32 * 4)) sum += value;
    constexpr uint64_t kWords = kVectors * 4;
    EXPECT_EQ(sum, static_cast<uint32_t>(kWords * (kWords - 1) / 2)) << "contiguous " << contiguous;
  }
}

TEST(Ceiling, ABufferThatTheGridDoesNotDivideIsRefused) {
  KernelRun run;
  const CeilingRead read{
      .buffer = run.output(4096), .out = run.output(4096), .shape = {.groups = 3, .workgroup = 64}};
  EXPECT_FALSE(run.try_record([&](Context& ctx) { return record(ctx, read); }));
}

TEST(Ceiling, TheArithmeticKernelsRunEveryRound) {
  constexpr CeilingShape kShape{.groups = 2, .workgroup = 32, .rounds = 3};
  {
    KernelRun run;  // x + 1 a step: 8 chains of 8 steps a round
    const TensorView out = run.output(2 * 32 * 4);
    const CeilingArithmetic op{
        .seed = run.input(std::vector<float>{1, 1, 0, 0}), .out = out, .shape = kShape};
    ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
    run.replay();
    const std::vector<float> got = run.read<float>(out, 2 * 32);
    for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(got[t], 8 * static_cast<float>(t % 32) + 28 + 8 * 8 * 3) << t;
    EXPECT_EQ(run.plan().entries.front().operations, 2u * 32 * 3 * 64 * 2);
  }
  if (!device().caps().dp4a)
    return note_refusal("ceiling.dp4a", "this device has no packed 8-bit dot product");
  KernelRun run;
  const TensorView out = run.output(2 * 32 * 4);
  constexpr int32_t kOperand = 0x01FF02FE;
  const CeilingArithmetic op{
      .seed = run.input(std::vector<int32_t>{kOperand, 0, 0, 0}), .out = out, .shape = kShape, .dp4a = true};
  ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
  run.replay();
  const std::vector<int32_t> got = run.read<int32_t>(out, 2 * 32);
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t sum = 0;
    for (uint32_t chain = 0; chain < 8; ++chain) {
      uint32_t x = t % 32 + chain;
      for (uint32_t step = 0; step < 8 * 3; ++step) {
        int32_t dot = 0;
        for (uint32_t byte = 0; byte < 4; ++byte) {
          dot += static_cast<int8_t>(x >> 8 * byte) * static_cast<int8_t>(kOperand >> 8 * byte);
        }
        x += static_cast<uint32_t>(dot);
      }
      sum += x;
    }
    ASSERT_EQ(static_cast<uint32_t>(got[t]), sum) << t;
  }
}

TEST(Ceiling, TheMatrixKernelRunsEveryRound) {
  const gpu::Caps& caps = device().caps();
  if (!caps.matrix_f16 || caps.subgroup_min != caps.subgroup_max)
    return note_refusal("ceiling.matrix", "this device has no f16 subgroup matrices");
  const uint32_t subgroups = 2 * 64 / caps.subgroup_min;
  KernelRun run;
  std::vector<uint16_t> seed(5 * 256, f32_to_f16(1));
  for (size_t i = 256; i < seed.size(); ++i) seed[i] = f32_to_f16(static_cast<float>(i / 256));
  const TensorView out = run.output(uint64_t{subgroups} * 1024 * 4);
  const CeilingMatrix op{
      .seed = run.input(seed), .out = out, .shape = {.groups = 2, .workgroup = 64, .rounds = 3}};
  ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
  run.replay();
  const std::vector<float> got = run.read<float>(out, uint64_t{subgroups} * 1024);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 48 * static_cast<float>(i % 1024 / 256 + 1)) << i;
}

// Bounds from no device that could be meant: a slow virtual CPU, ten of the fastest GPUs.
TEST(Ceiling, FiguresArePlausible) {
  const auto measured = gpu::run_to_completion(device(), measure_ceilings(device()));
  ASSERT_TRUE(measured) << measured.error().message();
  printf("read %.3g B/s, f32 %.3g, dp4a %.3g, matrix %.3g operations/s, dispatch %.0f ns, timestamps %d\n",
         measured->read_bytes_per_second, measured->f32_operations_per_second,
         measured->dp4a_operations_per_second, measured->matrix_operations_per_second, measured->dispatch_ns,
         measured->by_timestamps);
  EXPECT_GT(measured->read_bytes_per_second, 1e7);
  EXPECT_LT(measured->read_bytes_per_second, 1e14);
  EXPECT_GT(measured->f32_operations_per_second, 1e7);
  EXPECT_LT(measured->f32_operations_per_second, 1e15);
  EXPECT_EQ(measured->dp4a_operations_per_second > 0, device().caps().dp4a);
  EXPECT_LT(measured->matrix_operations_per_second, 1e17);
  EXPECT_GE(measured->dispatch_ns, 0);
}

}  // namespace
}  // namespace doppler::kernels::testing
