// Lanes, policies and the choice of a row, on a made-up table: no device.
#include <gtest/gtest.h>

#include <array>

#include "kernels/variant.h"

namespace doppler::kernels {
namespace {

struct Shape {
  uint32_t n = 0;
};

std::string refuse_odd(const Shape& shape, const gpu::Caps&) {
  return shape.n % 2 ? format_text("%u is odd", shape.n) : "";
}

constexpr std::array<Variant<Shape>, 3> kRows = {
    {{"op.matrix", Lane::kMatrix, kNeedMatrixF16 | kNeedTint},
     {"op.subgroup", Lane::kSubgroups, kNeedSubgroups, refuse_odd},
     {"op.portable"}}};

struct Choosing {
  gpu::Caps caps;
  Policy policy;
  std::vector<Choice> choices;

  Result<const Variant<Shape>*> choose(uint32_t n) {
    gpu::PlanBuilder plan(caps);
    Context ctx{.plan = plan, .policy = policy, .choices = choices};
    return select("op", std::span<const Variant<Shape>>(kRows), Shape{n}, format_text("%u", n), ctx);
  }
  std::string name(uint32_t n) {
    const auto row = choose(n);
    return row ? std::string((*row)->name) : row.error().sentence();
  }
};

TEST(Policy, NamesItsLanes) {
  EXPECT_TRUE(make_policy("fast")->allows(Lane::kMatrix));
  EXPECT_TRUE(make_policy("exact")->allows(Lane::kSubgroups));
  EXPECT_FALSE(make_policy("exact")->allows(Lane::kDp4a));
  EXPECT_TRUE(make_policy("dp4a")->allows(Lane::kPortable));
  EXPECT_FALSE(make_policy("dp4a")->allows(Lane::kSubgroups));
  EXPECT_EQ(make_policy("exakt").error().sentence(),
            "There is no lane \"exakt\" (did you mean exact?); the lanes are exact, fast, portable, "
            "subgroups, dp4a, matrix, persistent.");
}

TEST(Select, TakesTheFirstRowThatFitsAndSaysWhyNotTheOthers) {
  Choosing choosing;
  choosing.caps.subgroups = true;
  EXPECT_EQ(choosing.name(4), "op.subgroup");
  EXPECT_EQ(choosing.name(4), "op.subgroup");
  EXPECT_EQ(choosing.name(5), "op.portable");
  ASSERT_EQ(choosing.choices.size(), 2u);
  EXPECT_EQ(choosing.choices[0].uses, 2u);
  ASSERT_EQ(choosing.choices[1].refused.size(), 2u);
  EXPECT_EQ(choosing.choices[1].refused[0].reason, "the device has no f16 subgroup matrices");
  EXPECT_EQ(choosing.choices[1].refused[1].reason, "5 is odd");
}

TEST(Select, IsResolveAndANote) {
  Choosing choosing;
  choosing.caps.subgroups = true;
  for (const uint32_t n : {4u, 5u}) {
    const auto resolved = resolve("op", std::span<const Variant<Shape>>(kRows), Shape{n},
                                  format_text("%u", n), choosing.caps, choosing.policy);
    ASSERT_TRUE(resolved);
    EXPECT_EQ(choosing.choices.size(), n - 4);  // resolve() notes nothing
    const auto selected = choosing.choose(n);
    ASSERT_TRUE(selected);
    EXPECT_EQ(*selected, resolved->row);
    ASSERT_EQ(choosing.choices.size(), n - 3);
    const Choice& noted = choosing.choices.back();
    EXPECT_EQ(noted.variant, resolved->choice.variant);
    EXPECT_EQ(noted.refused.size(), resolved->choice.refused.size());
  }
}

TEST(Select, AForcedRowIsTakenOrAnError) {
  Choosing choosing;
  choosing.caps.subgroups = true;
  choosing.policy.forced["op"] = "op.portable";
  EXPECT_EQ(choosing.name(4), "op.portable");
  EXPECT_TRUE(choosing.choices[0].forced);
  choosing.policy.forced["op"] = "op.subgroup";
  EXPECT_EQ(choosing.name(5), "Variant op.subgroup was asked for but cannot be used for 5: 5 is odd.");
  choosing.policy.forced["op"] = "op.subgruop";
  EXPECT_EQ(choosing.name(4),
            "op has no variant \"op.subgruop\" (did you mean op.subgroup?); its variants are op.matrix, "
            "op.subgroup, "
            "op.portable.");
  choosing.policy = *make_policy("portable");
  choosing.policy.forced["op"] = "op.subgroup";
  EXPECT_EQ(
      choosing.choose(4).error().sentence(),
      "Variant op.subgroup was asked for but cannot be used for 4: the lane subgroups is not among those of "
      "\"portable\".");
}

}  // namespace
}  // namespace doppler::kernels
