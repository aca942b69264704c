// The native device end to end, under the provider that DOPPLER_WEBGPU names (ctest runs it once for each):
// plans replayed, results read back, and every way of going wrong that a user can reach.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "gpu/device.h"
#include "gpu/plan_builder.h"

namespace doppler::gpu {
namespace {

class GpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto opened = open({});
    if (opened) {
      device_ = std::move(*opened).release();
    } else {
      problem_ = new std::string(opened.error().message());
    }
  }
  static void TearDownTestSuite() {
    delete device_;
    delete problem_;
    device_ = nullptr;
  }
  void SetUp() override {
    if (problem_) GTEST_SKIP() << *problem_;
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

  static Device* device_;
  static std::string* problem_;
};
Device* GpuTest::device_ = nullptr;
std::string* GpuTest::problem_ = nullptr;

// y[i] = x[i] * factor + state[0], for i below count; grid: 64 a workgroup.
constexpr char kScale[] = R"(
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
constexpr char kAdvance[] = R"(
@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@compute @workgroup_size(1) fn main() { state[0] = state[0] + 1u; }
)";
// Row r of y becomes r + 1: one workgroup a row pair.
constexpr char kRows[] = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = id.x + 1u; }
)";

PipelineDesc scale_pipeline() {
  return {.label = "test.scale",
          .wgsl = kScale,
          .layout = {BindKind::kUniform, BindKind::kRead, BindKind::kRead, BindKind::kReadWrite},
          .constants = {}};
}
PipelineDesc advance_pipeline() {
  return {.label = "test.advance", .wgsl = kAdvance, .layout = {BindKind::kReadWrite}, .constants = {}};
}

struct ScaleParams {
  uint32_t factor;
  uint32_t count;
};

void record_scale(PlanBuilder& plan, ScaleParams params, TensorView x, TensorView state, TensorView y) {
  const TensorView bindings[] = {x, state, y};
  const DispatchDesc desc = {.pipeline = scale_pipeline(),
                             .params = {reinterpret_cast<const uint8_t*>(&params), sizeof params},
                             .bindings = bindings,
                             .grid = {.x = (params.count + 63) / 64},
                             .role = "test"};
  const auto recorded = plan.dispatch(desc);
  ASSERT_TRUE(recorded) << recorded.error().message();
}
void record_advance(PlanBuilder& plan, TensorView state) {
  const auto recorded = plan.dispatch(
      {.pipeline = advance_pipeline(), .params = {}, .bindings = {&state, 1}, .grid = {}, .role = "advance"});
  ASSERT_TRUE(recorded) << recorded.error().message();
}

TEST_F(GpuTest, SaysWhatTheDeviceIs) {
  const Caps& caps = device_->caps();
  printf(
      "%s on %s (%s, %s): f16 %d, subgroups %u-%u, dp4a %d, timestamps %d, matrix %d, buffer %s, memory %s\n",
      caps.provider.c_str(), caps.adapter.c_str(), adapter_type_name(caps.type), caps.driver.c_str(),
      caps.f16, caps.subgroup_min, caps.subgroup_max, caps.dp4a, caps.timestamps, caps.matrix_f16,
      format_bytes(caps.max_buffer_bytes).c_str(), format_bytes(caps.memory_bytes).c_str());
  EXPECT_EQ(caps.backend, "vulkan");
  EXPECT_GE(caps.max_invocations, 256u);
  EXPECT_GE(caps.max_storage_buffers, 8u);
  EXPECT_TRUE(caps.dp4a);
  if (caps.subgroups) {
    EXPECT_GE(caps.subgroup_min, 4u);
    EXPECT_LE(caps.subgroup_max, 128u);
    EXPECT_LE(caps.subgroup_min, caps.subgroup_max);
  }
}

TEST_F(GpuTest, WritesAndReadsBack) {
  const Buffer buffer = make("round trip", 4000);
  std::vector<uint32_t> words(1000);
  std::iota(words.begin(), words.end(), 7u);
  write(buffer, words);
  EXPECT_EQ(read_all(buffer), words);
}

TEST_F(GpuTest, NewBuffersAreZeroAroundWhatWasWritten) {
  {  // leave something behind in memory that may be reused
    const Buffer dirty = make("dirty", 1 << 20);
    write(dirty, std::vector<uint32_t>(1 << 18, 0xABABABABu));
    read_all(dirty);
  }
  const Buffer buffer = make("clean", 1 << 20);
  write(buffer, {5}, 400);
  write(buffer, {6}, 40);
  std::vector<uint32_t> expected(1 << 18, 0);
  expected[100] = 5;
  expected[10] = 6;
  EXPECT_EQ(read_all(buffer), expected);
}

TEST_F(GpuTest, ReplaysAPlanWhoseStateTheGpuAdvances) {
  constexpr uint32_t kCount = 100;
  const Buffer x = make("x", kCount * 4);
  const Buffer state = make("state", 16);
  const Buffer out = make("out", kCount * 4);
  std::vector<uint32_t> values(kCount);
  std::iota(values.begin(), values.end(), 0u);
  write(x, values);

  PlanBuilder builder(device_->caps());
  const TensorView s = builder.external(state);
  const TensorView middle = builder.scratch("middle", kCount * 4);
  const TensorView last = builder.scratch("last", kCount * 4);
  builder.begin("three and a copy", 1);
  record_scale(builder, {3, kCount}, builder.external(x), s, middle);
  record_scale(builder, {2, kCount}, middle, s, last);
  ASSERT_TRUE(builder.copy(last, builder.external(out), "result"));
  record_advance(builder, s);
  builder.end();
  auto built = wait(builder.build(*device_, nullptr));
  ASSERT_TRUE(built) << built.error().message();
  EXPECT_EQ(built->plans[0].dispatch_count(), 3u);

  constexpr uint32_t kTimes = 5;
  submit({.plan = &built->plans[0], .times = kTimes});
  EXPECT_EQ(read_all(state)[0], kTimes);
  const std::vector<uint32_t> result = read_all(out);
  const uint32_t seen = kTimes - 1;  // the state the last replay worked with
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(result[i], (i * 3 + seen) * 2 + seen);
}

}  // namespace
}  // namespace doppler::gpu
