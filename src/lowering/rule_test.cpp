// Turning rules off by name: what is taken, and what the refusals say.
#include "lowering/rule.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace doppler::lowering {
namespace {

std::string refusal(std::string_view assignment) {
  RuleSet rules;
  const Result<void> set = rules.set(assignment);
  return set ? "" : set.error().sentence();
}

TEST(RuleSet, TurnsARuleOffAndOnAgain) {
  RuleSet rules;
  EXPECT_TRUE(rules.has("fused_rope"));
  ASSERT_TRUE(rules.set("fused_rope=off"));
  EXPECT_FALSE(rules.has("fused_rope"));
  EXPECT_TRUE(rules.has("step_tail"));
  EXPECT_EQ(rules.off().size(), 1u);
  ASSERT_TRUE(rules.set("fused_rope=on"));
  EXPECT_TRUE(rules.has("fused_rope"));
  EXPECT_TRUE(rules.off().empty());
}

TEST(RuleSet, SuggestsTheNearestOfAnUnknownName) {
  EXPECT_TRUE(refusal("fused_roep=off")
                  .starts_with("There is no rule \"fused_roep\" (did you mean fused_rope?); the rules are "
                               "persistent_layers, step_tail, "))
      << refusal("fused_roep=off");
  EXPECT_TRUE(refusal("=off").starts_with("There is no rule \"\"; the rules are ")) << refusal("=off");
}

TEST(RuleSet, TakesOnAndOffAlone) {
  EXPECT_EQ(refusal("fused_rope=maybe"),
            "A rule is set to on or off, as in fused_rope=off; given was \"fused_rope=maybe\".");
  EXPECT_EQ(refusal("fused_rope"),
            "A rule is set to on or off, as in fused_rope=off; given was \"fused_rope\".");
}

TEST(RuleSet, LeavesThePlainRulesOn) {
  for (const Rule& rule : rules()) {
    if (!rule.is_plain) continue;
    EXPECT_TRUE(refusal(std::string(rule.name) + "=off").starts_with("There is no rule \"")) << rule.name;
  }
}

// Otherwise nodes of that operation could not be lowered at all.
TEST(Rules, EachOperationEndsWithItsPlainRule) {
  for (uint32_t kind = 0; kind < graph::kOpKindCount; ++kind) {
    const Rule* last = nullptr;
    for (const Rule& rule : rules()) {
      if (rule.at & at(static_cast<graph::OpKind>(kind))) last = &rule;
    }
    ASSERT_NE(last, nullptr) << "operation " << kind;
    EXPECT_TRUE(last->is_plain) << last->name;
  }
}

TEST(PlanReport, CountsTheNodesOfAReasonOnce) {
  PlanReport report;
  report.note_refused("fused_rope", "blk.0.attention", "it is a test");
  report.note_refused("fused_rope", "blk.1.attention", "it is a test");
  report.note_applied("fused_rope");
  const PlanReport::Use& use = report.rules.at("fused_rope");
  EXPECT_EQ(use.applied, 1u);
  ASSERT_EQ(use.refused.size(), 1u);
  EXPECT_EQ(use.refused[0].node, "blk.0.attention");
  EXPECT_EQ(use.refused[0].nodes, 2u);
}

}  // namespace
}  // namespace doppler::lowering
