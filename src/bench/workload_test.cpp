// Tests made from bench's flags, the lengths they take, and the statistics of samples.
#include "bench/workload.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/statistics.h"

namespace doppler::bench {
namespace {

std::string names(const TestLists& lists) {
  const auto tests = make_tests(lists);
  if (!tests) return tests.error().sentence();
  std::string out;
  for (const Test& test : *tests) out += (out.empty() ? "" : ", ") + test.name();
  return out;
}

TEST(Workload, ListsBecomeTheTestsOfLlamaBench) {
  EXPECT_EQ(names({}), "pp512, tg128");
  EXPECT_EQ(names({.prompts = {16, 512}, .generates = {0}}), "pp16, pp512");
  EXPECT_EQ(names({.prompts = {0}, .generates = {0}, .pairs = {{512, 128}}}), "pp512+tg128");
  EXPECT_EQ(names({.prompts = {8}, .generates = {4}, .depths = {0, 4096}}),
            "pp8, tg4, pp8 @ d4096, tg4 @ d4096");
}

TEST(Workload, StreamsAreMeasuredAlone) {
  EXPECT_EQ(names({.depths = {0, 512}, .streams = {1, 8}}),
            "tg128 x1, tg128 x8, tg128 x1 @ d512, tg128 x8 @ d512");
  EXPECT_EQ(parse_streams("1, 64").value(), (std::vector<uint32_t>{1, 64}));
  EXPECT_NE(parse_streams("0").error().sentence().find("--streams was given \"0\""), std::string::npos);
  EXPECT_NE(parse_streams("8,65").error().sentence().find("--streams was given \"8,65\""), std::string::npos);
  EXPECT_EQ(sequences_needed(*make_tests({})), 1u);
  EXPECT_EQ(sequences_needed(*make_tests({.streams = {1}})), 2u);
  EXPECT_EQ(sequences_needed(*make_tests({.streams = {1, 32, 8}})), 32u);
}

TEST(Workload, TestsThatMeasureNothingAreRefused) {
  EXPECT_NE(names({.prompts = {0}, .generates = {0}}).find("No test is left"), std::string::npos);
  EXPECT_NE(names({.prompts = {0}, .generates = {1}}).find("measures nothing"), std::string::npos);
  EXPECT_EQ(names({.prompts = {1}, .generates = {0}}), "pp1");
}

TEST(Workload, PositionsCountDepthAndTheOneTokenThatGenerationStartsFrom) {
  const auto tests = make_tests({.prompts = {100}, .generates = {50}, .depths = {1000}});
  ASSERT_TRUE(tests);
  EXPECT_EQ((*tests)[0].positions(), 1100u);
  EXPECT_EQ((*tests)[1].positions(), 1051u);
  EXPECT_EQ(positions_needed(*tests), 1100u);
}

TEST(Workload, LengthsAreParsedExactly) {
  EXPECT_EQ(parse_lengths("-p", "128").value(), (std::vector<uint32_t>{128}));
  EXPECT_EQ(parse_lengths("-p", "128, 0,512").value(), (std::vector<uint32_t>{128, 0, 512}));
  EXPECT_EQ(parse_pair("-pg", "512,128").value(), (std::pair<uint32_t, uint32_t>{512, 128}));
  for (const char* wrong : {"", "x", "1,", "-1", "1.5", "99999999999999999999", "16777217"}) {
    const auto lengths = parse_lengths("-p", wrong);
    ASSERT_FALSE(lengths) << wrong;
    EXPECT_NE(lengths.error().sentence().find("-p"), std::string::npos);
  }
  EXPECT_FALSE(parse_pair("-pg", "512"));
  EXPECT_FALSE(parse_pair("-pg", "1,2,3"));
}

TEST(Workload, PromptsAreRepeatableAndDoNotRepeat) {
  const std::vector<uint32_t> prompt = make_prompt(512, 128256, 1);
  EXPECT_EQ(prompt, make_prompt(512, 128256, 1));
  EXPECT_NE(prompt, make_prompt(512, 128256, 2));
  EXPECT_GT(std::set<uint32_t>(prompt.begin(), prompt.end()).size(), 500u);
  for (const uint32_t token : make_prompt(100, 3, 0)) EXPECT_LT(token, 3u);
}

TEST(Statistics, OfFewSamples) {
  const std::vector<double> samples = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(samples), 2.5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(mean(samples), 2.5);
  EXPECT_NEAR(stddev(samples), 1.2909944487, 1e-9);  // sqrt(5 / 3)
  EXPECT_DOUBLE_EQ(stddev(std::vector<double>{7}), 0);
  EXPECT_DOUBLE_EQ(least(samples), 1);
  EXPECT_DOUBLE_EQ(most(samples), 4);
  EXPECT_DOUBLE_EQ(median({}) + mean({}) + stddev({}) + least({}) + most({}), 0);
}

}  // namespace
}  // namespace doppler::bench
