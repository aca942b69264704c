// Builds one plan a ceiling and replays it until the clock can be trusted.
#include "kernels/ceiling/ceiling.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/half.h"
#include "kernels/ceiling/ceiling_parts.h"

namespace doppler::kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kGpuBytes = 1ull << 30;    // many times any cache
constexpr uint64_t kCpuBytes = 128ull << 20;  // a CPU reads it in some 20 ms
constexpr uint64_t kLeastBytes = 16ull << 20;
constexpr uint32_t kRepeats = 4;  // dispatches of one replay, timed one by one
constexpr double kEnoughNs =
    20e6;  // of repetitions together: clocks have risen, the host's clock is fine enough
constexpr uint32_t kMostReplays = 256;
// Clocks of an idle GPU rise for some hundred milliseconds: three windows in a row that gain less than 3 % are steady.
// After the load of a large model a GPU may stay at its low clocks for more than 400 ms before they rise, so at least a
// second passes.
constexpr uint32_t kSteadyWindows = 3;
constexpr double kSteadyRatio = 0.97, kLeastWarmUpNs = 1e9, kMostWarmUpNs = 3e9;
constexpr uint32_t kChain = 256;  // dispatches of the short chain; the long one has twice as many
constexpr uint32_t kChainRepetitions = 7;
constexpr float kMultiplier = 0.999f, kAddend = 0.001f;  // runs to 1, so no denormals
constexpr uint32_t kDotOperand = 0x01FF02FEu;

struct DeviceShapes {
  std::vector<CeilingShape> read;  // the best shape counts
  CeilingShape arithmetic, matrix;
  bool contiguous = false;
};

// Rounds: about a millisecond on a large GPU, some hundred on a small one.
DeviceShapes shapes_for(const gpu::Caps& caps) {
  if (caps.type == gpu::AdapterType::kCpu) return {{{64, 64, 0}}, {64, 64, 64}, {}, true};
  return {{{1024, 256, 0}, {4096, 256, 0}, {16384, 256, 0}}, {4096, 256, 256}, {1056, 128, 1024}, false};
}

uint64_t read_bytes_for(const gpu::Caps& caps) {
  const uint64_t wanted = caps.type == gpu::AdapterType::kCpu ? kCpuBytes : kGpuBytes;
  uint64_t bytes = kLeastBytes;  // a power of two, so that every shape divides it
  while (bytes * 2 <= std::min({wanted, caps.max_buffer_bytes, caps.max_binding_bytes})) bytes *= 2;
  return bytes;
}

// One plan of `repeats` dispatches as `body` records it.
class Trial {
 public:
  explicit Trial(gpu::Device& device) : device_(device), builder_(device.caps()) {}
  gpu::PlanBuilder& builder() { return builder_; }

  template <class Op>
  Result<void> record_all(const Op& op, uint32_t repeats) {
    std::vector<Choice> choices;
    const Policy policy;
    Context ctx{.plan = builder_,
                .policy = policy,
                .choices = choices,
                .state = {},
                .max_rows = 1,
                .op_label = "ceiling"};
    builder_.begin("ceiling", 1);
    for (uint32_t i = 0; i < repeats; ++i) DP_CHECK(record(ctx, op));
    builder_.end();
    return {};
  }

  Task<Result<void>> build() {
    auto building = builder_.build(device_, nullptr);
    DP_CO_TRY(built_, co_await std::move(building));
    co_return Result<void>();
  }

  // Nanoseconds of the submit's work on the host's clock, without encoding it.
  Task<Result<double>> wall_ns(uint32_t times) {
    const gpu::Work work{.plan = &plan(), .rows = 1, .times = times};
    DP_CO_CHECK(device_.submit({&work, 1}));
    const auto start = Clock::now();
    auto waiting = device_.idle();
    DP_CO_CHECK(co_await std::move(waiting));
    co_return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }

  // Runs the plan until the clocks have risen: until windows of kEnoughNs no longer get faster.
  Task<Result<void>> warm_up() {
    double before = 0, together = 0;
    const auto done = [&](uint32_t steady) {
      return together >= kMostWarmUpNs || (steady >= kSteadyWindows && together >= kLeastWarmUpNs);
    };
    for (uint32_t steady = 0; !done(steady);) {
      double window = 0;
      uint32_t replays = 0;
      for (; window < kEnoughNs; ++replays) {
        auto running = wall_ns(1);
        DP_CO_TRY(const double ns, co_await std::move(running));
        window += ns;
      }
      const double each = window / replays;
      steady = before > 0 && each > before * kSteadyRatio ? steady + 1 : 0;
      before = before > 0 ? std::min(before, each) : each;
      together += window;
    }
    co_return Result<void>();
  }

  // The shortest dispatch of the plan.
  Task<Result<double>> best_ns() {
    double best = 0, together = 0;
    for (uint32_t i = 0; i < kMostReplays && together < kEnoughNs; ++i) {
      double least = 0;
      if (device_.caps().timestamps) {
        auto timing = device_.time_commands(plan(), 1);
        DP_CO_TRY(const std::vector<uint64_t> times, co_await std::move(timing));
        for (const uint64_t time : times) together += static_cast<double>(time);
        least = static_cast<double>(*std::ranges::min_element(times));
      } else {
        auto timing = wall_ns(1);
        DP_CO_TRY(const double all, co_await std::move(timing));
        together += all;
        least = all / plan().dispatch_count();
      }
      if (least > 0 && (best == 0 || least < best)) best = least;
    }
    co_return best;
  }

  const gpu::Plan& plan() const { return built_.plans.front(); }

 private:
  gpu::Device& device_;
  gpu::PlanBuilder builder_;
  gpu::BuiltPlans built_;
};

// As large as the device gives, down to kLeastBytes.
Task<Result<gpu::Buffer>> make_buffer(gpu::Device& device) {
  for (uint64_t bytes = read_bytes_for(device.caps());; bytes /= 2) {
    auto creating = device.create_buffer({.name = "ceiling", .bytes = bytes});
    auto made = co_await std::move(creating);
    if (made || bytes <= kLeastBytes) co_return made;
  }
}

Task<Result<double>> measure_read(gpu::Device& device, const DeviceShapes& shapes) {
  auto making = make_buffer(device);
  DP_CO_TRY(const gpu::Buffer buffer, co_await std::move(making));
  {
    Trial fill(device);
    const CeilingFill op{.buffer = fill.builder().external(buffer), .shape = shapes.read.front()};
    DP_CO_CHECK(fill.record_all(op, 1));
    auto building = fill.build();
    DP_CO_CHECK(co_await std::move(building));
    auto filling = fill.wall_ns(1);
    DP_CO_CHECK(co_await std::move(filling));
  }
  double best = 0;
  for (const CeilingShape& shape : shapes.read) {
    Trial trial(device);
    CeilingRead op{
        .buffer = trial.builder().external(buffer), .shape = shape, .contiguous = shapes.contiguous};
    op.out = trial.builder().scratch("sums", uint64_t{shape.groups} * shape.workgroup * 16);
    DP_CO_CHECK(trial.record_all(op, kRepeats));
    auto building = trial.build();
    DP_CO_CHECK(co_await std::move(building));
    if (best == 0 && device.caps().type != gpu::AdapterType::kCpu) {
      auto warming = trial.warm_up();
      DP_CO_CHECK(co_await std::move(warming));
    }
    auto timing = trial.best_ns();
    DP_CO_TRY(const double ns, co_await std::move(timing));
    if (ns > 0) best = std::max(best, static_cast<double>(buffer.bytes()) / ns * 1e9);
  }
  co_return best;
}

Task<Result<double>> measure_arithmetic(gpu::Device& device, const CeilingShape& shape, bool dp4a) {
  auto creating = device.create_buffer({.name = "ceiling seed", .bytes = 16});
  DP_CO_TRY(const gpu::Buffer seed, co_await std::move(creating));
  const float factors[4] = {kMultiplier, kAddend, 0, 0};
  const uint32_t operands[4] = {kDotOperand, 0, 0, 0};
  const void* values = dp4a ? static_cast<const void*>(operands) : static_cast<const void*>(factors);
  DP_CO_CHECK(device.write(seed, 0, {static_cast<const uint8_t*>(values), 16}));
  Trial trial(device);
  CeilingArithmetic op{.seed = trial.builder().external(seed), .shape = shape, .dp4a = dp4a};
  op.out = trial.builder().scratch("results", uint64_t{shape.groups} * shape.workgroup * 4);
  DP_CO_CHECK(trial.record_all(op, kRepeats));
  auto building = trial.build();
  DP_CO_CHECK(co_await std::move(building));
  auto timing = trial.best_ns();
  DP_CO_TRY(const double ns, co_await std::move(timing));
  co_return ns > 0 ? static_cast<double>(trial.plan().entries.front().operations) / ns * 1e9 : 0;
}

Task<Result<double>> measure_matrix(gpu::Device& device, const CeilingShape& shape) {
  constexpr uint32_t kNumbers = 5 * 16 * 16, kResultBytes = 4 * 16 * 16 * 4;
  auto creating = device.create_buffer({.name = "ceiling fragments", .bytes = kNumbers * 2});
  DP_CO_TRY(const gpu::Buffer seed, co_await std::move(creating));
  const std::vector<uint16_t> numbers(kNumbers, f32_to_f16(kAddend));
  DP_CO_CHECK(device.write(seed, 0, {reinterpret_cast<const uint8_t*>(numbers.data()), kNumbers * 2}));
  Trial trial(device);
  CeilingMatrix op{.seed = trial.builder().external(seed), .shape = shape};
  const uint64_t subgroups = uint64_t{shape.groups} * shape.workgroup / device.caps().subgroup_min;
  op.out = trial.builder().scratch("fragments", subgroups * kResultBytes);
  DP_CO_CHECK(trial.record_all(op, kRepeats));
  auto building = trial.build();
  DP_CO_CHECK(co_await std::move(building));
  auto timing = trial.best_ns();
  DP_CO_TRY(const double ns, co_await std::move(timing));
  co_return ns > 0 ? static_cast<double>(trial.plan().entries.front().operations) / ns * 1e9 : 0;
}

// Always by the host's clock, since a chain has to run as one: the difference of two lengths, so that what a
// submit and a wait cost cancels out.
Task<Result<double>> measure_dispatch(gpu::Device& device) {
  auto creating = device.create_buffer({.name = "ceiling counter", .bytes = 16});
  DP_CO_TRY(const gpu::Buffer counter, co_await std::move(creating));
  Trial trial(device);
  DP_CO_CHECK(trial.record_all(CeilingEmpty{.counter = trial.builder().external(counter)}, kChain));
  auto building = trial.build();
  DP_CO_CHECK(co_await std::move(building));
  double once = 0, twice = 0;
  for (uint32_t i = 0; i < kChainRepetitions; ++i) {
    auto first = trial.wall_ns(1);
    DP_CO_TRY(const double short_ns, co_await std::move(first));
    auto second = trial.wall_ns(2);
    DP_CO_TRY(const double long_ns, co_await std::move(second));
    once = i == 0 ? short_ns : std::min(once, short_ns);
    twice = i == 0 ? long_ns : std::min(twice, long_ns);
  }
  co_return std::max(0.0, twice - once) / kChain;
}

}  // namespace

Task<Result<Ceilings>> measure_ceilings(gpu::Device& device) {
  const DeviceShapes shapes = shapes_for(device.caps());
  Ceilings out{.by_timestamps = device.caps().timestamps};
  auto reading = measure_read(device, shapes);
  DP_CO_TRY(out.read_bytes_per_second, co_await std::move(reading));
  auto adding = measure_arithmetic(device, shapes.arithmetic, /*dp4a=*/false);
  DP_CO_TRY(out.f32_operations_per_second, co_await std::move(adding));
  if (device.caps().dp4a) {
    auto dotting = measure_arithmetic(device, shapes.arithmetic, /*dp4a=*/true);
    DP_CO_TRY(out.dp4a_operations_per_second, co_await std::move(dotting));
  }
  if (device.caps().matrix_f16 && device.caps().subgroup_min == device.caps().subgroup_max) {
    auto multiplying = measure_matrix(device, shapes.matrix);
    DP_CO_TRY(out.matrix_operations_per_second, co_await std::move(multiplying));
  }
  auto launching = measure_dispatch(device);
  DP_CO_TRY(out.dispatch_ns, co_await std::move(launching));
  co_return out;
}

}  // namespace doppler::kernels
