// Tests the costs of a plan's command, by rows and by the positions that are in the cache.
#include "bench/plan_costs.h"

#include <gtest/gtest.h>

namespace doppler::bench {
namespace {

// A product (per row, with weights), an attention, a norm of the last row only, a copy per row.
gpu::Plan sample_plan() {
  gpu::Plan plan;
  plan.words = {gpu::kDispatch, 0, 0, 1, 1, 1, 1,  0,  //
                gpu::kDispatch, 0, 0, 1, 1, 1, 16, 0,  //
                gpu::kDispatch, 0, 0, 1, 1, 1, 0,  0,  //
                gpu::kCopy,     0, 0, 0, 0, 4, 0,  1};
  plan.entries = {
      {.name = "matvec", .op_label = "blk.0.attn_qkv", .bytes = 10, .fixed_bytes = 1000, .operations = 500},
      {.name = "attention",
       .op_label = "blk.0.attention",
       .bytes = 10,
       .fixed_bytes = 4000,
       .operations = 8000,
       .keys = 100},
      {.name = "norm", .op_label = "output_norm", .bytes = 30, .fixed_bytes = 5, .operations = 40},
      {.name = "copy", .op_label = "x", .bytes = 16}};
  return plan;
}

TEST(PlanCosts, PerRowFiguresAreMultipliedAndFixedOnesAreNot) {
  const gpu::Plan plan = sample_plan();
  const StepShape shape{.rows = 3, .depth = 0};
  EXPECT_EQ(cost_of(plan, 0, shape).bytes, 1030u);
  EXPECT_EQ(cost_of(plan, 0, shape).operations, 1500u);
  EXPECT_EQ(cost_of(plan, 2, shape).bytes, 35u);
  EXPECT_EQ(cost_of(plan, 2, shape).operations, 40u);
  EXPECT_EQ(cost_of(plan, 3, shape).bytes, 48u);
}

TEST(PlanCosts, AttentionReadsThePositionsThatAreThere) {
  const gpu::Plan plan = sample_plan();
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 99}).bytes, 4010u);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 24}).bytes, 1010u);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 24}).operations, 2000u);
  // 20 rows from position 0: 20 positions read, 10.5 attended to on average.
  EXPECT_EQ(cost_of(plan, 1, {.rows = 20, .depth = 0}).bytes, 800u + 200u);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 20, .depth = 0}).operations, 20u * 8000 * 21 / 200);
  EXPECT_EQ(total_bytes(plan, {.rows = 1, .depth = 24}), 1010u + 1010 + 35 + 16);
}

TEST(PlanCosts, RowsOfManySequencesReadACacheEach) {
  const gpu::Plan plan = sample_plan();
  const StepShape shape{.rows = 3, .depth = 24, .each_alone = true};
  EXPECT_EQ(cost_of(plan, 1, shape).bytes, 3u * 1000 + 3 * 10);
  EXPECT_EQ(cost_of(plan, 1, shape).operations, 3u * 2000);
  EXPECT_EQ(cost_of(plan, 0, shape).bytes, 1030u);
}

TEST(PlanCosts, RowsOfAPictureSeeAllOfIt) {
  const gpu::Plan plan = sample_plan();
  const StepShape shape{.rows = 20, .all_sides = true};
  EXPECT_EQ(cost_of(plan, 1, shape).bytes, 800u + 200u);
  EXPECT_EQ(cost_of(plan, 1, shape).operations, 20u * 8000 * 20 / 100);
}

TEST(PlanCosts, AWindowMovesOnInsteadOfGrowing) {
  gpu::Plan plan = sample_plan();
  plan.entries[1].keys = 10;  // 400 bytes and 800 operations a position
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 3}).bytes, 1600u + 10);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 50}).bytes, 4000u + 10);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 1, .depth = 50}).operations, 8000u);
  // Four rows deep in the text see 13 positions together, 10 each.
  EXPECT_EQ(cost_of(plan, 1, {.rows = 4, .depth = 50}).bytes, 13u * 400 + 4 * 10);
  EXPECT_EQ(cost_of(plan, 1, {.rows = 4, .depth = 50}).operations, 4u * 8000);
  // Across the edge: 9, 10, 10 and 10 positions.
  EXPECT_EQ(cost_of(plan, 1, {.rows = 4, .depth = 8}).operations, 39u * 800);
}

}  // namespace
}  // namespace doppler::bench
