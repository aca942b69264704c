// Shared by the tests of the native device: one device (the provider that DOPPLER_WEBGPU names; ctest runs each file
// once a provider), short ways to make, fill and read buffers, and three small kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "gpu/device.h"
#include "gpu/plan_builder.h"

namespace doppler::gpu {

class GpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = open({});
    if (opened) {
      device_ = std::move(*opened).release();
    } else {
      problem_ = new Error(opened.error());
    }
  }
  static void TearDownTestSuite() {
    delete device_;
    delete problem_;
    device_ = nullptr;
    problem_ = nullptr;
  }
  void SetUp() override {
    if (!problem_) return;
    // A provider that does not take this machine's only device (Dawn and an old Mesa) is a reason to skip; a
    // missing library or driver is a failure.
    if (problem_->kind() == ErrorKind::kUnsupported) GTEST_SKIP() << problem_->message();
    FAIL() << problem_->message();
  }

  static Result<std::unique_ptr<Device>> open(DeviceOptions options) {
    auto task = Device::open(std::move(options));
    task.start();  // natively it never waits
    return task.take();
  }
  template <class T>
  static T wait(Task<T> task) {
    return run_to_completion(*device_, std::move(task));
  }
  static Buffer make(std::string name, uint64_t bytes, BufferUse use = BufferUse::kStorage) {
    auto buffer = wait(device_->create_buffer({std::move(name), bytes, use}));
    EXPECT_TRUE(buffer) << buffer.error().message();
    return std::move(*buffer);
  }
  static void write(const Buffer& buffer, const std::vector<uint32_t>& words, uint64_t offset = 0) {
    const auto written = device_->write(buffer, offset, bytes_of(words));
    ASSERT_TRUE(written) << written.error().message();
  }
  static std::span<const uint8_t> bytes_of(const std::vector<uint32_t>& words) {
    return {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 4};
  }
  static std::vector<uint32_t> words_of(const std::vector<uint8_t>& bytes) {
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), words.size() * 4);
    return words;
  }
  static std::vector<uint32_t> read_all(const Buffer& buffer) {
    auto bytes = wait(device_->read_buffer({buffer.id(), 0, buffer.bytes()}));
    EXPECT_TRUE(bytes) << bytes.error().message();
    return bytes ? words_of(*bytes) : std::vector<uint32_t>();
  }
  static void submit(const Work& work, const ReadbackRequest* readback = nullptr) {
    const auto submitted = device_->submit({&work, 1}, readback);
    ASSERT_TRUE(submitted) << submitted.error().message();
  }

  static inline Device* device_ = nullptr;
  static inline Error* problem_ = nullptr;
};

// y[i] = x[i] * factor + state[0], for i below count; grid: 64 a workgroup.
inline constexpr char kScale[] = R"(
struct Params { factor: u32, count: u32, }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> state: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < params.count) { y[id.x] = x[id.x] * params.factor + state[0]; }
}
)";
// state[0] += 1
inline constexpr char kAdvance[] = R"(
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@compute @workgroup_size(1) fn main() { state[0] = state[0] + 1u; }
)";
// y[i] = i + 1 for two rows of one word a workgroup.
inline constexpr char kRows[] = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = id.x + 1u; }
)";

inline PipelineDesc scale_pipeline() {
  return {.label = "test.scale",
          .wgsl = kScale,
          .layout = {BindKind::kUniform, BindKind::kRead, BindKind::kRead, BindKind::kReadWrite},
          .constants = {}};
}
inline PipelineDesc advance_pipeline() {
  return {.label = "test.advance", .wgsl = kAdvance, .layout = {BindKind::kReadWrite}, .constants = {}};
}

struct ScaleParams {
  uint32_t factor;
  uint32_t count;
};

inline void record_scale(PlanBuilder& plan, ScaleParams params, TensorView x, TensorView state,
                         TensorView y) {
  const TensorView bindings[] = {x, state, y};
  const DispatchDesc desc = {.pipeline = scale_pipeline(),
                             .params = {reinterpret_cast<const uint8_t*>(&params), sizeof params},
                             .bindings = bindings,
                             .grid = {.x = (params.count + 63) / 64},
                             .op_label = "test"};
  const auto recorded = plan.dispatch(desc);
  ASSERT_TRUE(recorded) << recorded.error().message();
}
inline void record_advance(PlanBuilder& plan, TensorView state) {
  const auto recorded = plan.dispatch({.pipeline = advance_pipeline(),
                                       .params = {},
                                       .bindings = {&state, 1},
                                       .grid = {},
                                       .op_label = "advance"});
  ASSERT_TRUE(recorded) << recorded.error().message();
}

}  // namespace doppler::gpu
