// The ground of every kernel test: one device per process, buffers with poison and guard words, a recorded plan, and a
// loop over the rows of a variant table. The numbers to compare with come from oracle.h.
//
//   for_each_variant("rms_norm", rms_norm_variants(), [&](const Policy& policy) {
//     KernelRun run(policy, /*max_rows=*/3);
//     TensorView x = run.input(values);
//     TensorView y = run.output(3 * n * sizeof(float));
//     if (!run.record([&](Context& ctx) { return record(ctx, RmsNorm{...}); })) return;  // refused, by name
//     run.replay(/*rows=*/2);
//     EXPECT_LT(rel_l2(run.read<float>(y, 2 * n), want), 1e-6);
//   });
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "kernels/common/step_state.h"
#include "kernels/context.h"
#include "kernels/testing/oracle.h"
#include "kernels/variant.h"

namespace doppler::kernels::testing {

// Opened on first use with the provider that DOPPLER_WEBGPU names (Device::open decides without it), and the
// adapter that DOPPLER_DEVICE names. Failing to open ends the test program with the sentence: a test that
// cannot run must not pass.
gpu::Device& device();

// Every 32-bit word of an output before the kernel runs: a NaN as f32, far outside as an integer.
inline constexpr uint32_t kPoison = 0x7FC0DEADu;
// Around outputs. The views given to kernels include the guard after the data, so that a write past the end is seen
// even if the provider clamps it into the binding.
inline constexpr uint64_t kGuardBytes = 256;

// One plan on the shared device. Test failures (device errors, overwritten guards) are reported to
// GoogleTest.
class KernelRun {
 public:
  explicit KernelRun(Policy policy = {}, uint32_t max_rows = 1);

  StepState state;  // written before each replay(); `rows` is set by replay(), ctx_len must suit the test

  template <class T>
  TensorView input(const std::vector<T>& values) {
    return make(bytes_of(values), values.size() * sizeof(T), false);
  }
  // Poisoned, `bytes` long (a multiple of 4), guarded on both sides.
  TensorView output(uint64_t bytes) { return make({}, bytes, true); }
  // An input that the kernel also writes: guarded like an output.
  template <class T>
  TensorView inout(const std::vector<T>& values) {
    return make(bytes_of(values), values.size() * sizeof(T), true);
  }
  template <class T>
  void overwrite(TensorView view, const std::vector<T>& values) {
    write(view, bytes_of(values));
  }
  TensorView state_view() const { return state_view_; }

  // Records into the one plan and builds it. False: the forced variant refuses this shape or device, which is
  // printed once by name. Any other error is a test failure (and false).
  bool record(const std::function<Result<void>(Context&)>& body);
  // For tests of refusals: records only, and gives the error.
  Result<void> try_record(const std::function<Result<void>(Context&)>& body);

  // Writes `state` with `rows`, replays the plan `times`, waits, checks every guard, and reads `state` back.
  void replay(uint32_t rows = 1, uint32_t times = 1);

  template <class T>
  std::vector<T> read(TensorView view, uint64_t count) {
    std::vector<T> values(count);
    const std::vector<uint8_t> bytes = read_bytes(view, count * sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const std::vector<Choice>& choices() const { return choices_; }
  const gpu::Plan& plan() const { return built_.plans.front(); }

 private:
  struct Allocation {
    gpu::Buffer buffer;
    TensorView view;
    uint64_t data_offset = 0;
    uint64_t data_bytes = 0;
    bool guarded = false;
  };

  template <class T>
  static std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
  }
  TensorView make(std::span<const uint8_t> contents, uint64_t bytes, bool guarded);
  const Allocation& find(TensorView view) const;
  void write(TensorView view, std::span<const uint8_t> bytes);
  std::vector<uint8_t> read_bytes(TensorView view, uint64_t bytes);
  void check_guards();

  Policy policy_;
  uint32_t max_rows_;
  gpu::PlanBuilder builder_;
  std::vector<Choice> choices_;
  std::vector<std::unique_ptr<Allocation>> allocations_;
  TensorView state_view_;
  gpu::BuiltPlans built_;
};

// Prints "not run here: <variant>: <reason>" once per pair.
void note_refusal(std::string_view variant, std::string_view reason);

// Calls `body` with a policy that forces each row of the table in turn; prints the names of rows that this device
// cannot run. Fails if not a single row ran: the last row of a table is portable.
template <class Row, class Body>
void for_each_variant(std::string_view operation, std::span<const Row> rows, Body body) {
  uint32_t ran = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.name));
    Policy policy;
    policy.forced[std::string(operation)] = row.name;
    if (std::string reason = refuse_by_device(row.lane, row.needs, device().caps(), policy);
        !reason.empty()) {
      note_refusal(row.name, reason);
      continue;
    }
    body(policy);
    ++ran;
  }
  EXPECT_GT(ran, 0u) << "no variant of " << operation << " runs on this device";
}

}  // namespace doppler::kernels::testing
