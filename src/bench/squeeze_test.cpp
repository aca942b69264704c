// Tests red flags, each by the run that must raise only it, the choice of a cadence, and the correctness gate.
#include "bench/squeeze.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"

namespace doppler::bench {
namespace {

// A healthy run: 100 us a step, spent completely on the GPU.
struct Sample {
  Row decode{.test = {.generate = 128},
             .rates = {10'000},
             .submits_per_token = 0.1,
             .host_us_per_token = 20,
             .gpu_seconds = 1e-4};
  std::vector<PlanProfile> plans = {{.plan = "decode.greedy",
                                     .by_kernel = {{.name = "matvec.q4_k.dp4a", .seconds = 0.96},
                                                   {.name = "glu.portable", .seconds = 0.04}},
                                     .gpu_seconds = 1}};
  std::vector<kernels::Choice> choices = {{.operation = "matvec", .shape = "a", .variant = "matvec.dp4a"}};

  std::vector<std::string> flags() const {
    std::vector<std::string> names;
    for (const RedFlag& flag : red_flags({.decode = decode, .plans = plans, .choices = choices}))
      names.push_back(flag.name);
    return names;
  }
};
using Names = std::vector<std::string>;

TEST(RedFlags, AGoodRunHasNone) { EXPECT_EQ(Sample().flags(), Names{}); }

TEST(RedFlags, APinToAVariantThatTheTablesRankLower) {
  Sample run;
  run.choices[0].forced = true;
  EXPECT_EQ(run.flags(), Names{});  // pinned to what the table says anyway
  run.choices[0].table_variant = "matvec.better";
  EXPECT_EQ(run.flags(), Names{"pinned-variant"});
  run.choices[0].forced = false;  // tuned: measured, not pinned
  EXPECT_EQ(run.flags(), Names{});
}

TEST(RedFlags, APortableRowInAHotPlace) {
  Sample run;
  run.plans[0].by_kernel[1].seconds = 0.06;
  EXPECT_EQ(run.flags(), Names{"portable-row"});
}

TEST(RedFlags, TooManySubmits) {
  Sample run;
  run.decode.submits_per_token = 2;
  EXPECT_EQ(run.flags(), Names{});
  run.decode.submits_per_token = 2.1;
  EXPECT_EQ(run.flags(), Names{"submits"});
}

TEST(RedFlags, AnIdleDeviceAndASlowHost) {
  Sample run;
  run.decode.rates = {9'000};
  EXPECT_EQ(run.flags(), Names{"idle-device"});
  run.decode.host_us_per_token = 110;
  EXPECT_EQ(run.flags(), (Names{"idle-device", "slow-host"}));
  run.decode.gpu_seconds = 0;  // not measured: no claim is made
  EXPECT_EQ(run.flags(), Names{});
}

TEST(Cadences, TheSmallestAmongTheFastest) {
  const std::vector<CadencePoint> sweep = {
      {{1, 1}, 500}, {{8, 1}, 990}, {{16, 1}, 995}, {{64, 1}, 1000}, {{16, 4}, 998}};
  EXPECT_EQ(best_cadence(sweep).batch, 8u);
  EXPECT_EQ(best_cadence({}).batch, model::kDefaultBatch);
}

TEST(Gates, LogitsMayNotGetWorseAndTokensMayNotChange) {
  const GateInputs same{
      .tokens_before = {1, 2, 3}, .tokens_after = {1, 2, 3}, .error_before = 0.01, .error_after = 0.011};
  EXPECT_TRUE(judge(same).passed);
  GateInputs worse = same;
  worse.error_after = 0.02;
  EXPECT_FALSE(judge(worse).passed);
  worse.error_after = NAN;
  EXPECT_FALSE(judge(worse).passed);
  GateInputs changed = same;
  changed.tokens_after = {1, 2, 4};
  EXPECT_FALSE(judge(changed).passed);
  EXPECT_EQ(judge(changed).equal_tokens, 2u);
  changed.tokens_after = {1, 2};
  EXPECT_FALSE(judge(changed).passed);
  changed.synthetic = true;
  EXPECT_TRUE(judge(changed).passed);
  EXPECT_FALSE(judge({}).passed);  // nothing was compared
}

TEST(SqueezeReports, TextAndJsonSayWhatWasFound) {
  SqueezeReport report;
  report.before = {{.test = {.generate = 128}, .rates = {100, 110, 90}}};
  report.after = {{.test = {.generate = 128}, .rates = {150}}};
  report.sweep = {{{8, 1}, 150}};
  report.cadence = {8, 1};
  report.flags_before = {{"submits", "A decode step takes 3 submits."}};
  report.gate = judge({.tokens_before = {1}, .tokens_after = {2}});
  report.commands = {"doppler bench"};
  const std::string text = squeeze_text(report);
  EXPECT_NE(text.find("| tg128 | 100.00 | 90.00 | 110.00 | 150.00 | 150.00 | 150.00 | 1.500 |"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("submits: A decode step takes 3 submits."), std::string::npos) << text;
  EXPECT_NE(text.find("Correctness FAILED"), std::string::npos) << text;
  EXPECT_NE(text.find("Nothing was stored."), std::string::npos) << text;
  EXPECT_NE(text.find("doppler bench"), std::string::npos) << text;
  const auto json = parse_json(squeeze_json(report), "squeeze");
  ASSERT_TRUE(json);
  EXPECT_DOUBLE_EQ((*json)["tests"][0]["ratio"].get<double>(), 1.5);
  EXPECT_EQ((*json)["red_flags"]["before"][0]["name"], "submits");
  EXPECT_EQ((*json)["correctness"]["passed"], false);
}

}  // namespace
}  // namespace doppler::bench
