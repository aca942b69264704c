// Grouping of timed commands, their floors, and what the report says about them.
#include "bench/profile.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "bench/profile_report.h"

namespace doppler::bench {
namespace {

constexpr kernels::Ceilings kCeilings{.read_bytes_per_second = 1e9,
                                      .f32_operations_per_second = 1e9,
                                      .dp4a_operations_per_second = 1e10,
                                      .dispatch_ns = 1000};

std::vector<CommandTime> sample_commands() {
  return {{"matvec.q4_k.dp4a", "blk.0.attn_qkv", 0.010, 2'000'000, 4'000'000},
          {"attention.split.portable", "blk.0.attention", 0.030, 1'000'000, 4'000'000},
          {"attention.combine.portable", "blk.0.attention", 0.001, 0, 0},
          {"matvec.q4_k.dp4a", "blk.11.attn_qkv", 0.012, 2'000'000, 4'000'000},
          {"sample.argmax", "output", 0.002, 500'000, 0}};
}

TEST(Profile, LayerNumbersDisappearFromOpLabels) {
  EXPECT_EQ(op_kind("blk.0.attn_qkv"), "blk.*.attn_qkv");
  EXPECT_EQ(op_kind("blk.123.ffn_norm"), "blk.*.ffn_norm");
  EXPECT_EQ(op_kind("token_embd"), "token_embd");
  EXPECT_EQ(op_kind("output_norm2"), "output_norm2");
  EXPECT_EQ(op_kind(""), "");
}

TEST(Profile, CommandsAreGroupedLongestFirst) {
  const PlanProfile plan = summarise("decode", sample_commands(), kCeilings);
  ASSERT_EQ(plan.by_op.size(), 3u);
  EXPECT_EQ(plan.by_op[0].name, "blk.*.attention");
  EXPECT_EQ(plan.by_op[0].members.size(), 2u);
  EXPECT_EQ(plan.by_op[1].name, "blk.*.attn_qkv");
  EXPECT_EQ(plan.by_op[1].calls, 2u);
  EXPECT_EQ(plan.by_op[1].bytes, 4'000'000u);
  EXPECT_NEAR(plan.by_op[1].seconds, 0.022, 1e-12);
  ASSERT_EQ(plan.by_kernel.size(), 4u);
  EXPECT_EQ(plan.by_kernel[0].name, "attention.split.portable");
  EXPECT_NEAR(plan.gpu_seconds, 0.055, 1e-12);
}

TEST(Profile, TheFloorIsTheLargerOfBytesAndOperations) {
  const PlanProfile plan = summarise("decode", sample_commands(), kCeilings);
  // f32: 4e6 operations at 1e9 take 4 ms, 1e6 bytes 1 ms.
  EXPECT_NEAR(plan.by_op[0].floor_seconds, 0.004, 1e-12);
  EXPECT_EQ(plan.by_op[0].bound, Bound::kOperations);
  // dp4a: 8e6 operations at 1e10 take 0.8 ms, 4e6 bytes 4 ms.
  EXPECT_NEAR(plan.by_op[1].floor_seconds, 0.004, 1e-12);
  EXPECT_EQ(plan.by_op[1].bound, Bound::kBytes);
  EXPECT_NEAR(plan.by_op[1].gap(), 0.018, 1e-12);
  EXPECT_NEAR(plan.floor_seconds, 0.0085, 1e-12);
  Group unknown{.bytes = 1000, .operations = 1000};
  set_floor(unknown, "matmul.q4_k.matrix", kCeilings);
  EXPECT_EQ(unknown.operations_floor, 0);
  EXPECT_EQ(unknown.bound, Bound::kBytes);
}

// Ceilings that were measured at low clocks gave shares of 180 % and a floor above the wall time.
TEST(Profile, AFloorAboveTheTimeIsRefused) {
  kernels::Ceilings slow = kCeilings;
  slow.read_bytes_per_second = 1.5e8;  // 4 MB then take 27 ms, of 22
  ProfileReport report;
  report.plans = {summarise("decode", sample_commands(), slow)};
  const PlanProfile& plan = report.plans[0];
  EXPECT_EQ(plan.broken_floors, 2u);
  EXPECT_EQ(plan.by_op[1].floor_seconds, 0);
  EXPECT_LE(plan.floor_seconds, plan.gpu_seconds);
  EXPECT_NE(notes(plan, report).back().find("2 of 3 operations took less than the ceilings allow"),
            std::string::npos)
      << notes(plan, report).back();
  report.facts.ceilings = slow;
  const auto json = parse_json(profile_json(report), "profile");
  ASSERT_TRUE(json);
  EXPECT_TRUE((*json)["plans"][0]["by_op"][1]["bandwidth_fraction"].is_null());
}

TEST(Profile, NotesNameTheLargestGapAndPortableRowsInHotPlaces) {
  ProfileReport report;
  report.facts.ceilings = kCeilings;
  report.choices = {{.operation = "attention",
                     .variant = "attention.split.portable",
                     .refused = {{"attention.split.subgroup", "the device has no subgroups"}}}};
  report.plans = {summarise("decode", sample_commands(), kCeilings)};
  report.plans[0].wall_seconds = 0.06;
  const std::vector<std::string> said = notes(report.plans[0], report);
  ASSERT_GE(said.size(), 4u);
  EXPECT_TRUE(said[0].starts_with("blk.*.attention")) << said[0];
  EXPECT_NE(said[3].find("portable row in a hot place"), std::string::npos) << said[3];
  EXPECT_NE(said[3].find("the device has no subgroups"), std::string::npos) << said[3];
  // attention.combine is portable too, but 2 % of the step.
  for (const std::string& note : said) EXPECT_FALSE(note.starts_with("attention.combine")) << note;
}

TEST(Profile, TextAndJsonSayThatTheyAreNotToBeQuoted) {
  ProfileReport report;
  report.facts.synthetic = true;
  report.facts.ceilings = kCeilings;
  report.plans = {summarise("decode", sample_commands(), kCeilings)};
  const std::string text = profile_text(report);
  EXPECT_TRUE(text.starts_with("INVESTIGATION, not to be quoted")) << text;
  EXPECT_NE(text.find("SYNTHETIC"), std::string::npos);
  const auto json = parse_json(profile_json(report), "profile");
  ASSERT_TRUE(json);
  EXPECT_EQ(get_string(*json, "intent").value(), "investigate");
  EXPECT_EQ(get_bool(*json, "synthetic").value(), true);
}

}  // namespace
}  // namespace doppler::bench
