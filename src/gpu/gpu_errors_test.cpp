// Every way of going wrong on the native device that a user or a kernel author can reach: one sentence each,
// and the device stays usable.
#include <optional>

#include "gpu/gpu_test_fixture.h"

namespace doppler::gpu {
namespace {

class GpuErrorsTest : public GpuTest {
 protected:
  void TearDown() override {
    if (!device_) return;
    EXPECT_TRUE(device_->status());
    const Buffer buffer = make("still alive", 16);
    write(buffer, {1, 2, 3, 4});
    EXPECT_EQ(read_all(buffer), (std::vector<uint32_t>{1, 2, 3, 4}));
  }
  static PipelineDesc one_buffer(std::string label, std::string wgsl) {
    return {.label = std::move(label),
            .wgsl = std::move(wgsl),
            .layout = {BindKind::kReadWrite},
            .constants = {}};
  }
  static std::string message_of(PipelineDesc desc) {
    std::vector<PipelineDesc> descs = {std::move(desc)};
    const auto made = wait(device_->create_pipelines(std::move(descs), nullptr));
    return made ? "no error" : made.error().message();
  }
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(GpuErrorsTest, BadWgslNamesThePipelineAndQuotesTheCompiler) {
  const std::string syntax = message_of(one_buffer("test.syntax", "fn main() { let x = ; }"));
  expect_contains(syntax, "Pipeline \"test.syntax\" does not compile under ");
  expect_contains(syntax, "let x = ;");
  const std::string binding =
      message_of(one_buffer("test.binding",
                            "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n"
                            "@compute @workgroup_size(1) fn main() { y[0] = 1u; }"));
  expect_contains(binding, "Pipeline \"test.binding\" does not compile");
  const std::string entry = message_of(one_buffer("test.entry", "@compute @workgroup_size(1) fn other() {}"));
  expect_contains(entry, "Pipeline \"test.entry\" does not compile");
  PipelineDesc unknown = one_buffer("test.constant", "@compute @workgroup_size(1) fn main() {}");
  unknown.constants = {{"NOT_THERE", 1.0}};
  expect_contains(message_of(unknown), "Pipeline \"test.constant\" does not compile");
}

TEST_F(GpuErrorsTest, ABufferLargerThanTheDeviceAllowsIsRefusedWithBothSizes) {
  const uint64_t limit = device_->caps().max_buffer_bytes;
  const auto made = wait(device_->create_buffer({"too large", limit + 4, BufferUse::kStorage}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::kOutOfMemory);
  expect_contains(made.error().sentence(), "Buffer \"too large\" (" + format_bytes(limit + 4) + ")");
  expect_contains(made.error().sentence(), "(" + format_bytes(limit) + ")");
}

TEST_F(GpuErrorsTest, OutOfMemoryIsAnErrorThatNamesTheBuffer) {
  // The buffers are never touched, so a driver on the CPU takes no memory for them.
  std::vector<Buffer> buffers;
  std::optional<Error> error;
  for (int i = 0; i < 500 && !error; ++i) {
    auto made =
        wait(device_->create_buffer({"cache", device_->caps().max_buffer_bytes, BufferUse::kStorage}));
    if (made) {
      buffers.push_back(std::move(*made));
    } else {
      error = made.error();
    }
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kOutOfMemory);
  const std::string size = format_bytes(device_->caps().max_buffer_bytes);
  expect_contains(error->sentence(), "There is no memory for buffer \"cache\" (" + size + ") on ");
}

TEST_F(GpuErrorsTest, MisusedBindingsAreRefused) {
  std::vector<PipelineDesc> descs = {advance_pipeline()};
  const auto pipelines = wait(device_->create_pipelines(std::move(descs), nullptr));
  ASSERT_TRUE(pipelines);
  const PipelineId pipeline = (*pipelines)[0];
  const Buffer buffer = make("small", 64);
  const Buffer uniform = make("uniform", 64, BufferUse::kUniform);
  const struct {
    std::vector<BufferSlice> bindings;
    const char* says;
  } cases[] = {
      {{}, "Pipeline \"test.advance\" has 1 bindings; 0 were given."},
      {{{buffer.id(), 0, 128}}, "Cannot bind 128 bytes at 0 of buffer \"small\", which has 64."},
      {{{buffer.id(), 64, 4}}, "Cannot bind 4 bytes at 64 of buffer \"small\""},
      {{{buffer.id(), 16, 4}},
       "(4 bytes at 16 of \"small\") is empty or does not start at a multiple of 256."},
      {{{uniform.id(), 0, 64}}, "cannot be buffer \"uniform\": it is a uniform buffer."},
      {{{12345, 0, 4}}, "GPU buffer 12345 was freed or never made."},
  };
  for (const auto& row : cases) {
    const auto group = device_->create_bind_group(pipeline, row.bindings);
    ASSERT_FALSE(group) << row.says;
    expect_contains(group.error().message(), row.says);
  }
}

TEST_F(GpuErrorsTest, WritesOutsideABufferAreRefused) {
  const Buffer buffer = make("small", 64);
  EXPECT_FALSE(device_->write(buffer, 64, bytes_of({1})));
  EXPECT_FALSE(device_->write(buffer, 2, bytes_of({1})));
  EXPECT_FALSE(device_->write(buffer, UINT64_MAX - 3, bytes_of({1, 2})));
  const std::vector<uint8_t> odd(3);
  EXPECT_FALSE(device_->write(buffer, 0, odd));
  EXPECT_FALSE(wait(device_->upload(buffer, 62, odd)));
  EXPECT_FALSE(wait(device_->read_buffer({buffer.id(), 32, 64})));
}

TEST_F(GpuErrorsTest, APlanThatLostABufferIsRefusedAtSubmit) {
  std::vector<PipelineDesc> descs = {advance_pipeline()};
  const auto pipelines = wait(device_->create_pipelines(std::move(descs), nullptr));
  ASSERT_TRUE(pipelines);
  Plan plan = {.name = "orphan", .words = {}, .entries = {}};
  const Buffer kept = make("kept", 16);
  {
    const Buffer state = make("gone", 16);
    const BufferSlice slice = {state.id(), 0, 16};
    const auto group = device_->create_bind_group((*pipelines)[0], {&slice, 1});
    ASSERT_TRUE(group);
    plan.words = {kDispatch, (*pipelines)[0], *group, 1, 1, 1, 0, 0};
    submit({.plan = &plan});
    plan.words.insert(plan.words.end(), {kCopy, state.id(), 0, kept.id(), 0, 4, 0, 0});
  }
  const Work work = {.plan = &plan};
  const uint64_t submits = device_->counters().submits;
  const auto refused = device_->submit({&work, 1});
  ASSERT_FALSE(refused);
  expect_contains(refused.error().message(),
                  "lost a buffer.\n  While replaying command 0 of plan \"orphan\"");
  EXPECT_EQ(device_->counters().submits, submits);
}

TEST_F(GpuErrorsTest, AGridBeyondTheDeviceIsRefusedBeforeTheProviderSeesIt) {
  std::vector<PipelineDesc> descs = {advance_pipeline()};
  const auto pipelines = wait(device_->create_pipelines(std::move(descs), nullptr));
  ASSERT_TRUE(pipelines);
  const Buffer state = make("state", 16);
  const BufferSlice slice = {state.id(), 0, 16};
  const auto group = device_->create_bind_group((*pipelines)[0], {&slice, 1});
  ASSERT_TRUE(group);
  const Plan plan = {
      .name = "wide",
      .words = {kDispatch, (*pipelines)[0], *group, device_->caps().max_workgroups + 1, 1, 1, 0, 0},
      .entries = {}};
  const Work work = {.plan = &plan};
  EXPECT_FALSE(device_->submit({&work, 1}));
}

TEST_F(GpuErrorsTest, AnUnknownAdapterOrProviderListsWhatThereIs) {
  const auto name = open({.provider = device_->caps().provider, .adapter = "Voodoo 2", .cache_dir = ""});
  ASSERT_FALSE(name);
  expect_contains(name.error().sentence(), "No adapter matches \"Voodoo 2\". There are:\n  0: ");
  expect_contains(name.error().sentence(), device_->caps().adapter);
  const auto number = open({.provider = device_->caps().provider, .adapter = "99", .cache_dir = ""});
  ASSERT_FALSE(number);
  expect_contains(number.error().sentence(), "No adapter matches \"99\". There are:\n  0: ");
  const auto provider = open({.provider = "/no/such/library.so", .adapter = "", .cache_dir = ""});
  ASSERT_FALSE(provider);
  expect_contains(provider.error().sentence(), "/no/such/library.so: no such file");
}

}  // namespace
}  // namespace doppler::gpu
