// The search over a scripted model: what is tried, what is kept and why, and when it ends.
#include "bench/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/json.h"

namespace doppler::bench {
namespace {

using kernels::TuningTable;

// One operation in decode ("matvec", shape "a" and "b", variants best first by the table) and one in both phases.
struct Script {
  std::map<std::string, double> seconds = {{"fast", 1.0},
                                           {"slow", 1.2}};  // of a step, by the variant of shape "a"
  std::map<std::string, double> errors;                     // by that variant; 0 elsewhere
  std::map<uint32_t, double> factor = {{4, 1.0}};           // by the constant "slices"
  double prefill_loss = 1;                                  // of variant "fast"
  std::string broken;                                       // this variant does not load
  std::vector<double> noise = {1.0};
  uint32_t loads = 0;
  double now = 0;
};

class ScriptedTrial final : public Trial {
 public:
  ScriptedTrial(Script& script, const TuningTable& table) : script_(script) {
    const kernels::TunedChoice* tuned = table.find("matvec", "a");
    variant_ = tuned ? tuned->variant : "slow";
    slices_ = tuned && tuned->constants.contains("slices") ? tuned->constants.at("slices") : 4;
    kernels::Choice a{.operation = "matvec", .shape = "a", .variant = variant_};
    for (const auto& [name, unused] : script.seconds) {
      if (name != variant_) a.others.push_back(name);
    }
    a.constants = {{.name = "slices", .value = slices_, .standard = 4, .alternatives = {2, 4, 8}}};
    choices_ = {{.operation = "norm", .shape = "1", .variant = "norm", .others = {"norm2"}}, a};
  }
  const std::vector<kernels::Choice>& choices() const override { return choices_; }
  double share(Phase phase, const std::string& variant) const override {
    if (variant == "norm") return 0.001;  // cold
    if (variant != variant_) return 0;
    return phase == Phase::kDecode ? 0.9 : script_.prefill_loss == 1 ? 0 : 0.5;
  }
  Result<double> seconds(Phase phase) override {
    script_.now += 1;
    if (phase == Phase::kPrefill) return variant_ == "fast" ? script_.prefill_loss : 1.0;
    const auto factor = script_.factor.find(slices_);
    return script_.seconds.at(variant_) * (factor == script_.factor.end() ? 1.3 : factor->second) *
           script_.noise[samples_++ % script_.noise.size()];
  }
  Result<double> error() override {
    const auto found = script_.errors.find(variant_);
    return found == script_.errors.end() ? 0.0 : found->second;
  }

 private:
  Script& script_;
  std::string variant_;
  uint32_t slices_ = 0;
  size_t samples_ = 0;
  std::vector<kernels::Choice> choices_;
};

class ScriptedMaker final : public TrialMaker {
 public:
  explicit ScriptedMaker(Script& script) : script_(script) {}
  Result<std::unique_ptr<Trial>> load(const TuningTable& table) override {
    ++script_.loads;
    const kernels::TunedChoice* tuned = table.find("matvec", "a");
    if (tuned && tuned->variant == script_.broken) return fail(ErrorKind::kDevice, "It does not compile.");
    return std::make_unique<ScriptedTrial>(script_, table);
  }

 private:
  Script& script_;
};

TunerResult run(Script& script, double budget = 1e9) {
  ScriptedMaker maker(script);
  const TunerSettings settings{.budget_seconds = budget, .rounds = 5, .clock = [&] { return script.now; }};
  auto result = tune(maker, settings);
  EXPECT_TRUE(result) << result.error().message();
  return result ? std::move(*result) : TunerResult{};
}

TEST(Tuner, AFasterVariantThatComputesTheSameIsKept) {
  Script script;
  const TunerResult result = run(script);
  const kernels::TunedChoice* choice = result.table.find("matvec", "a");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->variant, "fast");
  EXPECT_TRUE(choice->constants.empty());
  EXPECT_DOUBLE_EQ(choice->seconds, 1.0);
  EXPECT_DOUBLE_EQ(choice->table_seconds, 1.2);
  EXPECT_EQ(result.attempts.size(),
            3u);  // one variant, two other values of its constant; the cold norm is not tried
}

TEST(Tuner, ConstantsAreTriedOfTheVariantThatWon) {
  Script script;
  script.factor = {{4, 1.0}, {8, 0.9}};
  const TunerResult result = run(script);
  const kernels::TunedChoice* choice = result.table.find("matvec", "a");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->variant, "fast");
  EXPECT_EQ(choice->constants.at("slices"), 8u);
  EXPECT_DOUBLE_EQ(choice->table_seconds, 1.2);  // of the tables' choice, not of the step before
  EXPECT_DOUBLE_EQ(choice->seconds, 0.9);
}

TEST(Tuner, WrongLogitsAreNotKeptHoweverFast) {
  Script script;
  script.errors = {{"fast", 0.02}, {"slow", 0.01}};
  const TunerResult result = run(script);
  EXPECT_TRUE(result.table.choices.empty());
  EXPECT_NE(result.attempts[0].verdict.find("logits are off"), std::string::npos)
      << result.attempts[0].verdict;
  script.errors = {{"fast", NAN}};
  EXPECT_TRUE(run(script).table.choices.empty());
  script.errors = {{"fast", 0.0124}, {"slow", 0.01}};  // no worse than the lane is
  EXPECT_FALSE(run(script).table.choices.empty());
}

TEST(Tuner, NoiseIsNoGain) {
  Script script;
  script.seconds = {{"fast", 1.195}, {"slow", 1.2}};
  EXPECT_TRUE(run(script).table.choices.empty());
  script.seconds = {{"fast", 1.15}, {"slow", 1.2}};
  script.noise = {1, 1, 1.3, 1.3, 1};
  EXPECT_FALSE(run(script).table.choices.empty());  // both runners drift alike: rounds are in turns
}

TEST(Tuner, AGainInDecodeMayNotCostPrefill) {
  Script script;
  script.prefill_loss = 1.05;
  const TunerResult result = run(script);
  EXPECT_TRUE(result.table.choices.empty());
  EXPECT_NE(result.attempts[0].verdict.find("the other phase loses"), std::string::npos);
}

TEST(Tuner, ACandidateThatDoesNotLoadIsAnAttempt) {
  Script script;
  script.broken = "fast";
  const TunerResult result = run(script);
  EXPECT_TRUE(result.table.choices.empty());
  EXPECT_NE(result.attempts[0].verdict.find("It does not compile"), std::string::npos);
}

TEST(Tuner, TheBudgetEndsIt) {
  Script script;
  const TunerResult none = run(script, 0);
  EXPECT_TRUE(none.out_of_time);
  EXPECT_TRUE(none.attempts.empty());
  const TunerResult one = run(script, 5);
  EXPECT_TRUE(one.out_of_time);
  EXPECT_EQ(one.attempts.size(), 1u);
  EXPECT_FALSE(one.table.choices.empty());
  const auto json = parse_json(tuner_json(one, {}, {}), "tune");
  ASSERT_TRUE(json);
  EXPECT_EQ(get_bool(*json, "out_of_time").value(), true);
  EXPECT_NE(tuner_text(one).find("the time ran out"), std::string::npos);
}

}  // namespace
}  // namespace doppler::bench
