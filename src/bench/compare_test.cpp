// Reports of two builds: what may be compared, and the ratios of paired rounds.
#include "bench/compare.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/json.h"

namespace doppler::bench {
namespace {

Json report(double decode, const char* commit) {
  return {
      {"kind", "bench"},
      {"intent", "calibrate"},
      {"synthetic", true},
      {"commit", commit},
      {"version", "0.1.0"},
      {"date", "2026-01-31T12:00:00Z"},
      {"device", {{"adapter", "Some GPU"}, {"driver", "1.2"}, {"provider", "dawn"}, {"backend", "vulkan"}}},
      {"model", {{"name", "some model"}, {"bytes", 1000}}},
      {"settings", {{"lane", "fast"}, {"batch", 16}}},
      {"tests", {{{"test", "tg128"}, {"tokens_per_second", {{"median", decode}}}}}}};
}

TEST(Compare, RoundsArePairedSoThatDriftCancels) {
  // The device slows down from round to round; the candidate is 1.5 times as fast in each.
  const std::vector<Json> base = {report(100, "a"), report(80, "a"), report(60, "a")};
  const std::vector<Json> candidate = {report(150, "b"), report(120, "b"), report(90, "b")};
  const auto out = compare_reports(base, candidate);
  ASSERT_TRUE(out) << out.error().message();
  const Json& test = (*out)["tests"][0];
  EXPECT_DOUBLE_EQ(test["ratio"]["min"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(test["ratio"]["max"].get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(test["base"]["median"].get<double>(), 80);
  EXPECT_EQ((*out)["base"]["commit"], "a");
  EXPECT_EQ((*out)["candidate"]["commit"], "b");
  EXPECT_EQ((*out)["rounds"], 3);
  const std::string text = compare_text(*out);
  EXPECT_NE(text.find("| tg128 | 80.00 | 120.00 | 1.500 | 1.500 | 1.500 |"), std::string::npos) << text;
}

TEST(Compare, UnlikeRunsAreRefusedByName) {
  const std::vector<Json> base = {report(100, "a")};
  for (const char* member : {"adapter", "driver", "provider"}) {
    Json other = report(100, "b");
    other["device"][member] = "another";
    const auto out = compare_reports(base, std::vector<Json>{other});
    ASSERT_FALSE(out) << member;
    EXPECT_NE(out.error().sentence().find(member), std::string::npos) << out.error().sentence();
    EXPECT_NE(out.error().sentence().find("another"), std::string::npos) << out.error().sentence();
  }
  Json profile = report(100, "b");
  profile["kind"] = "profile";
  EXPECT_FALSE(compare_reports(std::vector<Json>{profile}, std::vector<Json>{profile}));
  EXPECT_FALSE(compare_reports(base, std::vector<Json>{}));
  EXPECT_FALSE(compare_reports({}, {}));
}

TEST(Compare, DamagedReportsAreErrorsNotCrashes) {
  for (const char* text : {"null", "[]", "{}", R"({"kind":"bench"})", R"({"kind":"bench","tests":3})",
                           R"({"kind":"bench","tests":[3,{"test":"x"}]})",
                           R"({"kind":"bench","tests":[{"test":"x","tokens_per_second":{"median":"1"}}]})"}) {
    const auto json = parse_json(text, "report");
    ASSERT_TRUE(json);
    EXPECT_FALSE(compare_reports(std::vector<Json>{*json}, std::vector<Json>{*json})) << text;
  }
}

}  // namespace
}  // namespace doppler::bench
