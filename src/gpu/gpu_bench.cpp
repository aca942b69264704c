// The costs of the device itself, without any model: opening, recording a dispatch, an empty dispatch on the GPU, a
// round trip, an upload. Run: DOPPLER_WEBGPU=dawn gpu_bench. Figures and their meaning: docs/design/gpu.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "gpu/device.h"

namespace doppler::gpu {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

constexpr int kRepetitions = 7;
constexpr uint32_t kDispatches = 1000;
constexpr uint64_t kUploadBytes = 256u << 20;

// The median of what `measure` returns.
template <class F>
double median(F measure) {
  std::vector<double> values;
  for (int i = 0; i < kRepetitions; ++i) values.push_back(measure());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Two pipelines and two bind groups in turn, so that every dispatch sets both.
Result<void> bench(Device& device) {
  Plan plan = {.name = "empty", .words = {}, .entries = {}};
  auto creating = device.create_buffer({"state", 16, BufferUse::kStorage});
  DP_TRY(const Buffer state, run_to_completion(device, std::move(creating)));
  std::vector<PipelineDesc> descs;
  for (const char* label : {"bench.a", "bench.b"}) {
    descs.push_back({.label = label,
                     .wgsl = "@group(0) @binding(0) var<storage, read_write> state: array<u32>;\n"
                             "@compute @workgroup_size(1) fn main() { state[0] = state[0] + 1u; }\n",
                     .layout = {BindKind::kReadWrite},
                     .constants = {}});
  }
  auto compiling = device.create_pipelines(descs, nullptr);
  DP_TRY(const auto pipelines, run_to_completion(device, std::move(compiling)));
  const BufferSlice slice = {state.id(), 0, 16};
  std::vector<BindGroupId> groups;
  for (const PipelineId pipeline : pipelines) {
    DP_TRY(const BindGroupId group, device.create_bind_group(pipeline, {&slice, 1}));
    groups.push_back(group);
  }
  for (uint32_t i = 0; i < kDispatches; ++i) {
    plan.words.insert(plan.words.end(), {kDispatch, pipelines[i % 2], groups[i % 2], 1, 1, 1, 0, 0});
  }

  Result<void> outcome;
  const auto keep = [&](Result<void> result) {
    if (!result) outcome = std::move(result);
  };
  const Work work = {.plan = &plan};
  const auto run = [&](bool wait_included) {
    const auto start = Clock::now();
    keep(device.submit({&work, 1}));
    const double submitted = microseconds_since(start);
    keep(run_to_completion(device, device.idle()));
    return (wait_included ? microseconds_since(start) : submitted) / kDispatches;
  };
  run(true);
  printf("record and submit, us a dispatch: %.2f\n", median([&] { return run(false); }));
  printf("until done, us a dispatch: %.2f\n", median([&] { return run(true); }));

  auto ringing = device.create_readback_ring(1, 16);
  DP_TRY(const ReadbackRing ring, run_to_completion(device, std::move(ringing)));
  const ReadbackRequest request = {.ring = &ring, .slot = 0, .from = {state.id(), 0, 4}};
  printf("submit and read 4 bytes, us: %.1f\n", median([&] {
           const auto start = Clock::now();
           keep(device.submit({}, &request));
           auto bytes = run_to_completion(device, device.read(ring, 0, 4));
           if (!bytes) outcome = forward(bytes.error());
           return microseconds_since(start);
         }));
  if (device.caps().timestamps) {
    DP_TRY(auto times, run_to_completion(device, device.time_commands(plan, 1)));
    std::sort(times.begin(), times.end());
    printf("one dispatch between timestamps, us: %.2f\n",
           static_cast<double>(times[times.size() / 2]) / 1000);
  }

  const std::vector<uint8_t> bytes(kUploadBytes, 1);
  auto making = device.create_buffer({"weights", kUploadBytes, BufferUse::kStorage});
  DP_TRY(const Buffer weights, run_to_completion(device, std::move(making)));
  printf("upload, GB/s: %.2f\n", static_cast<double>(kUploadBytes) / 1000 / median([&] {
                                   const auto start = Clock::now();
                                   keep(run_to_completion(device, device.upload(weights, 0, bytes)));
                                   keep(run_to_completion(device, device.idle()));
                                   return microseconds_since(start);
                                 }));
  return outcome;
}

int run() {
  const auto start = Clock::now();
  auto opening = Device::open({});
  opening.start();
  auto opened = opening.take();
  if (!opened) {
    fprintf(stderr, "%s\n", opened.error().message().c_str());
    return 1;
  }
  Device& device = **opened;
  printf("%s on %s (%s)\nopen, ms: %.0f\n", device.caps().provider.c_str(), device.caps().adapter.c_str(),
         device.caps().driver.c_str(), microseconds_since(start) / 1000);
  const auto done = bench(device);
  if (!done) fprintf(stderr, "%s\n", done.error().message().c_str());
  return done ? 0 : 1;
}

}  // namespace
}  // namespace doppler::gpu

int main() { return doppler::gpu::run(); }
