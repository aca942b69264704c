// Recording without a GPU: what PlanBuilder refuses, and plans as text.
#include "gpu/plan.h"

#include <gtest/gtest.h>

#include "gpu/plan_builder.h"
#include "gpu/recording_device.h"

namespace doppler::gpu {
namespace {

Caps small_caps() {
  Caps caps;
  caps.max_binding_bytes = 4096;
  caps.max_storage_buffers = 3;
  caps.max_workgroups = 100;
  return caps;
}

class PlanBuilderTest : public testing::Test {
 protected:
  PlanBuilderTest() { builder_.begin("decode", 8); }
  // The error of a dispatch of this layout, bindings, grid and bytes of parameters; "" if it is accepted.
  std::string refusal(std::vector<BindKind> layout, std::vector<TensorView> bindings, Grid grid = {},
                      size_t params_bytes = 0) {
    const std::vector<uint8_t> params(params_bytes);
    const auto recorded = builder_.dispatch({
        .pipeline = {.label = "op.v", .wgsl = "", .layout = std::move(layout), .constants = {}},
        .params = params,
        .bindings = bindings,
        .grid = grid,
        .op_label = "blk.0",
    });
    return recorded ? "" : recorded.error().message();
  }

  PlanBuilder builder_{small_caps()};
};

constexpr BindKind U = BindKind::kUniform;
constexpr BindKind R = BindKind::kRead;
constexpr BindKind W = BindKind::kReadWrite;

TEST_F(PlanBuilderTest, RefusesWhatWebGpuWouldNotTake) {
  const TensorView a = builder_.scratch("a", 1024);
  const TensorView b = builder_.scratch("b", 1024);
  const TensorView big = builder_.scratch("big", 8192);
  const struct {
    std::vector<BindKind> layout;
    std::vector<TensorView> bindings;
    Grid grid;
    size_t params_bytes;
    std::string says;
  } cases[] = {
      {{U, R, W}, {a, b}, {}, 16, ""},
      {{W, W}, {a.sub(0, 256), a.sub(256, 256)}, {}, 0, ""},
      {{R, R}, {a, a}, {}, 0, ""},
      {{R, W}, {a, b}, {.x = 100, .y = 100, .z = 100}, 0, ""},
      {{U, R}, {a}, {}, 0, "The layout has 1 uniform bindings and the call 0 bytes of parameters."},
      {{R}, {a}, {}, 4, "The layout has 0 uniform bindings and the call 4 bytes of parameters."},
      {{R, W}, {a}, {}, 0, "The layout has 2 storage bindings; 1 were given."},
      {{R, R, R, W}, {a, a, a, b}, {}, 0, "It binds 4 storage buffers; this device allows 3."},
      {{W}, {TensorView()}, {}, 0, "The storage binding 0 has no tensor."},
      {{W}, {a.sub(128, 4)}, {}, 0, "Storage binding 0 starts at 128 of \"a\", not a multiple of 256."},
      {{W},
       {a.sub(256, 6)},
       {},
       0,
       "The storage binding 0 (6 bytes at 256 of \"a\") is not in whole words of 4 bytes."},
      {{W},
       {a.sub(768, 512)},
       {},
       0,
       "The storage binding 0 (512 bytes at 768) is not inside \"a\" (1024 bytes)."},
      {{W},
       {big},
       {},
       0,
       "Storage binding 0 (\"big\", 8.00 KiB) is larger than this device binds (4.00 KiB)."},
      {{R, W}, {a, a}, {}, 0, "Storage bindings 0 and 1 are both \"a\", and one is written."},
      {{R, W},
       {a.sub(0, 256), a.sub(256, 256)},
       {},
       0,
       "Storage bindings 0 and 1 are both \"a\", and one is written."},
      {{W, W}, {a, a.sub(256, 256)}, {}, 0, "Storage bindings 0 and 1 are both \"a\", and one is written."},
      {{W}, {a}, {.x = 101}, 0, "A grid of 101x1x1 workgroups is not possible; each must be 1 to 100."},
      {{W}, {a}, {.x = 1, .y = 0}, 0, "A grid of 1x0x1 workgroups is not possible; each must be 1 to 100."},
      {{W},
       {a},
       {.rows_axis = 3, .rows_per_group = 1},
       0,
       "Rows axis 3 (allowed: 0 to 2) or 1 rows per group (up to 268435455) is wrong."},
  };
  for (const auto& row : cases) {
    const std::string got = refusal(row.layout, row.bindings, row.grid, row.params_bytes);
    const std::string wanted =
        row.says.empty() ? "" : row.says + "\n  While recording op.v (blk.0) in plan \"decode\".";
    EXPECT_EQ(got, wanted);
  }
}

TEST_F(PlanBuilderTest, RefusesCopiesThatWebGpuWouldNotTake) {
  const TensorView a = builder_.scratch("a", 1024);
  const TensorView b = builder_.scratch("b", 2048);
  const struct {
    TensorView from, to;
    bool per_row;
    std::string says;
  } cases[] = {
      {a, b.sub(0, 1024), false, ""},
      {a.sub(0, 128), b.sub(0, 128), true, ""},
      {a, b, false, "The source has 1024 bytes and the target 2048."},
      {a.sub(0, 256), b.sub(0, 256), true, "The source (2048 bytes at 0) is not inside \"a\" (1024 bytes)."},
      {a.sub(0, 64), a.sub(64, 64), false,
       "The source and the target are both in \"a\"; WebGPU copies between buffers."},
  };
  for (const auto& row : cases) {
    const auto copied = builder_.copy(row.from, row.to, "keep", row.per_row);
    const std::string wanted =
        row.says.empty() ? "" : row.says + "\n  While recording copy keep in plan \"decode\".";
    EXPECT_EQ(copied ? "" : copied.error().message(), wanted);
  }
}

TEST_F(PlanBuilderTest, RefusesToRecordOutsideAPlan) {
  const TensorView a = builder_.scratch("a", 1024);
  builder_.end();
  EXPECT_EQ(refusal({W}, {a}), "A dispatch was recorded outside begin() and end().");
}

TEST_F(PlanBuilderTest, GivesTheSameBufferTheSameSlot) {
  const Buffer buffer(nullptr, 12, 100);
  const TensorView first = builder_.external(buffer);
  EXPECT_EQ(first, builder_.external(buffer));
  EXPECT_EQ(first.bytes, 100u);
  EXPECT_NE(first.slot, builder_.external(Buffer(nullptr, 13, 100)).slot);
}

// Three tensors one after another need two buffers; if they may be written again in turn, each has its own.
TEST(PlanParts, ScratchOfAPartThatIsRepeatedIsItsAlone) {
  for (const uint32_t tag : {0u, 7u}) {
    Caps caps = small_caps();
    caps.max_buffer_bytes = 1 << 20;
    RecordingDevice device(caps);
    PlanBuilder builder(device.caps());
    const auto now = [](auto task) {
      task.start();
      return std::move(*task.take());
    };
    const Buffer buffer = now(device.create_buffer({.name = "x", .bytes = 512}));
    const TensorView x = builder.external(buffer);
    const TensorView a = builder.scratch("a", 256), b = builder.scratch("b", 256),
                     c = builder.scratch("c", 256);
    builder.begin("plan", 1);
    EXPECT_TRUE(builder.copy(x.sub(0, 256), a, "first"));
    builder.begin_part(tag);
    EXPECT_TRUE(builder.copy(a, b, "second"));
    EXPECT_TRUE(builder.copy(b, c, "third"));
    builder.begin_part(0);
    EXPECT_TRUE(builder.copy(c, x.sub(256, 256), "last"));
    builder.end();
    const BuiltPlans built = now(builder.build(device, {}));
    EXPECT_EQ(built.scratch_bytes, tag == 0 ? 512u : 768u);
    const std::vector<PlanPart>& parts = built.plans[0].parts;
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[1].first, 1u);
    EXPECT_EQ(parts[1].tag, tag);
    EXPECT_EQ(parts[2].first, 3u);
  }
}

TEST(Plan, CommandsAreReplacedByThoseOfAnother) {
  const auto plan_of = [](const char* name, std::vector<uint32_t> numbers) {
    Plan plan{.name = name, .max_rows = 8, .words = {}, .entries = {}};
    for (const uint32_t number : numbers) {
      plan.words.insert(plan.words.end(), {kDispatch, number, 0, 1, 1, 1, 0, 0});
      plan.entries.push_back({.name = std::to_string(number), .tensors = {number % 2, kNotScratch}});
    }
    return plan;
  };
  Plan base = plan_of("sample", {1, 2, 3, 4});
  base.parts = {{.first = 0}, {.first = 1, .tag = 5}, {.first = 3}};
  const Plan made = spliced(base, 1, 3, plan_of("sample.masks", {7, 8, 9}));
  EXPECT_EQ(made.name, "sample.masks");
  EXPECT_EQ(made.max_rows, 8u);
  std::string numbers;
  for (size_t i = 0; i < made.entries.size(); ++i) {
    EXPECT_EQ(std::to_string(made.words[i * kPlanCommandWords + 1]), made.entries[i].name);
    numbers += made.entries[i].name;
  }
  EXPECT_EQ(numbers, "17894");
  EXPECT_EQ(made.entries[0].tensors, (std::vector<uint32_t>{1, kNotScratch}));
  EXPECT_EQ(made.entries[1].tensors, (std::vector<uint32_t>{3, kNotScratch})) << "behind those of the base";
  EXPECT_EQ(made.parts[1].first, 1u);
  EXPECT_EQ(made.parts[2].first, 4u);
}

TEST(Plan, IsReadableAsText) {
  Plan plan = {.name = "prefill",
               .max_rows = 64,
               .words = {kDispatch, 3, 4, 10, 20, 1, 1u << 28 | 8, 0, kCopy, 1, 2, 5, 6, 7, 0, 1},
               .entries = {{.name = "matmul.q4_k", .op_label = "blk.0.attn_q"},
                           {.name = "copy", .op_label = "logits"}}};
  EXPECT_EQ(plan.dispatch_count(), 1u);
  EXPECT_EQ(describe(plan),
            "plan prefill, 2 commands, up to 64 rows\n"
            "0 matmul.q4_k blk.0.attn_q: pipeline 3, group 4, grid 10 x rows/8 x 1\n"
            "1 copy logits: buffer 1+8 -> buffer 5+24, 28 bytes a row\n");
}

}  // namespace
}  // namespace doppler::gpu
