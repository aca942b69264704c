// Tests what a digest of a plan depends on, and what not; and the answers of the recording device.
#include "gpu/plan_text.h"

#include <gtest/gtest.h>

#include <functional>

#include "gpu/plan_builder.h"

namespace doppler::gpu {
namespace {

template <class T>
T now(Task<T> task) {
  task.start();
  return task.take();
}

Caps small_caps() {
  return {.adapter = "a test",
          .max_buffer_bytes = 1 << 20,
          .max_binding_bytes = 1 << 20,
          .max_storage_buffers = 8,
          .max_workgroups = 65535};
}

// A chain of two dispatches over scratch, and the changes that a case makes.
struct Chain {
  std::string wgsl = "const WORKGROUP: u32 = 64u;\n// ---- a/b.wgsl\nfn main() {}\n";
  std::string label = "a.b", op_label = "blk.0.a", weight = "weight";
  std::vector<std::pair<std::string, double>> constants = {{"SIZE", 1}};
  uint32_t param = 7;
  Grid grid = {.x = 3, .rows_axis = 1, .rows_per_group = 8};
  bool second_scratch_first = false;  // asks for it first
  bool in_place = false;              // the second dispatch writes what the first one wrote
  uint32_t rows = 16;
};

std::string digest_of(const Chain& chain, std::vector<CommandText>* commands = nullptr) {
  RecordingDevice device(small_caps());
  PlanBuilder builder(device.caps());
  const Buffer weight = *now(device.create_buffer({.name = chain.weight, .bytes = 1024}));
  TensorView first, second;
  if (chain.second_scratch_first) second = builder.scratch("second", 512);
  first = builder.scratch("first", 512);
  if (!chain.second_scratch_first) second = builder.scratch("renamed", 512);
  builder.begin("plan", chain.rows);
  const auto add = [&](const TensorView& from, const TensorView& to) {
    const TensorView bindings[] = {from, to};
    DispatchDesc desc;
    desc.pipeline = {.label = chain.label,
                     .wgsl = chain.wgsl,
                     .layout = {BindKind::kUniform, BindKind::kRead, BindKind::kReadWrite},
                     .constants = chain.constants};
    desc.params = {reinterpret_cast<const uint8_t*>(&chain.param), sizeof(chain.param)};
    desc.bindings = bindings;
    desc.grid = chain.grid;
    desc.op_label = chain.op_label;
    EXPECT_TRUE(builder.dispatch(desc));
  };
  const TensorView all = builder.external(weight);
  add(all, first);
  add(all, chain.in_place ? first : second);
  EXPECT_TRUE(builder.copy(second, all.sub(512, 512), "copy"));
  builder.end();
  const auto built = now(builder.build(device, {}));
  EXPECT_TRUE(built);
  PlanText text(device);
  if (commands) *commands = text.commands(built->plans[0]);
  return text.digest(built->plans[0]);
}

TEST(PlanText, SaysWhatACommandIs) {
  std::vector<CommandText> commands;
  digest_of({}, &commands);
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0].grid, "3 x rows/8 x 1");
  EXPECT_EQ(commands[0].params, "00000007");
  EXPECT_EQ(commands[0].constants, (std::vector<std::string>{"WORKGROUP=64u", "SIZE=1"}));
  EXPECT_EQ(commands[1].bindings, (std::vector<std::string>{"r weight+0:1024", "rw scratch1+0:512"}));
  EXPECT_EQ(commands[2].bindings, (std::vector<std::string>{"r scratch1+0:512", "rw weight+512:512"}));
  EXPECT_EQ(one_line(commands[2]), "copy copy: 512 bytes; r scratch1+0:512; rw weight+512:512");
}

TEST(PlanText, NamesAndPlacesOfScratchDoNotCount) {
  const std::string digest = digest_of({});
  EXPECT_EQ(digest, digest_of({}));
  EXPECT_EQ(digest, digest_of({.label = "c.d"}));
  EXPECT_EQ(digest, digest_of({.op_label = "blk.1.a"}));
  EXPECT_EQ(digest, digest_of({.second_scratch_first = true}));
  EXPECT_EQ(digest, digest_of({.wgsl = "const WORKGROUP: u32 = 64u;  // invocations\n\n"
                                       "// ---- elsewhere/b.wgsl\n// Nothing.\n  fn main() {}\n"}));
}

TEST(PlanText, WhatTheGpuDoesCounts) {
  const std::string digest = digest_of({});
  EXPECT_NE(digest, digest_of({.wgsl = "const WORKGROUP: u32 = 32u;\n// ---- a/b.wgsl\nfn main() {}\n"}));
  EXPECT_NE(digest, digest_of({.wgsl = "const WORKGROUP: u32 = 64u;\n// ---- a/b.wgsl\nfn main() { }\n"}));
  EXPECT_NE(digest, digest_of({.weight = "other"}));
  EXPECT_NE(digest, digest_of({.constants = {{"SIZE", 2}}}));
  EXPECT_NE(digest, digest_of({.param = 8}));
  EXPECT_NE(digest, digest_of({.grid = {.x = 4, .rows_axis = 1, .rows_per_group = 8}}));
  EXPECT_NE(digest, digest_of({.grid = {.x = 3, .rows_axis = 2, .rows_per_group = 8}}));
  EXPECT_NE(digest, digest_of({.in_place = true}));
  EXPECT_NE(digest, digest_of({.rows = 17}));
}

TEST(RecordingDevice, ReadsGiveZerosAndKnownWords) {
  RecordingDevice device(small_caps(), {{.buffer = "counters", .offset = 16, .value = 132}});
  const Buffer counters = *now(device.create_buffer({.name = "counters", .bytes = 64}));
  const Buffer other = *now(device.create_buffer({.name = "other", .bytes = 64}));
  const std::vector<uint8_t> known = {0, 0, 0, 0, 132, 0, 0, 0};
  EXPECT_EQ(*now(device.read_buffer({counters.id(), 12, 8})), known);
  EXPECT_EQ(*now(device.read_buffer({counters.id(), 0, 8})), std::vector<uint8_t>(8));
  EXPECT_EQ(*now(device.read_buffer({other.id(), 12, 8})), std::vector<uint8_t>(8));
}

TEST(RecordingDevice, BuffersOfOneNameAreNumbered) {
  RecordingDevice device(small_caps());
  const Buffer first = *now(device.create_buffer({.name = "cache_k", .bytes = 64}));
  const Buffer second = *now(device.create_buffer({.name = "cache_k", .bytes = 64}));
  EXPECT_EQ(device.buffer_name(first.id()), "cache_k");
  EXPECT_EQ(device.buffer_name(second.id()), "cache_k#2");
}

TEST(RecordingDevice, KeepsToTheLimitOfABuffer) {
  RecordingDevice device(small_caps());
  const auto large = now(device.create_buffer({.name = "large", .bytes = (1 << 20) + 4}));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().sentence(),
            "Buffer \"large\" (1.00 MiB) is larger than a test allows for one buffer (1.00 MiB).");
}

}  // namespace
}  // namespace doppler::gpu
