// Figures of many streams from the moments at which their tokens came.
#include "bench/streams.h"

#include <gtest/gtest.h>

namespace doppler::bench {
namespace {

using Streams = std::vector<std::vector<Arrival>>;

TEST(Streams, OnlyWhatAllDecodeCounts) {
  // The first has its first token a second early, the second ends two seconds late: both make 2 tok/s from 1 to 3.
  const Streams streams = {{{0, 1}, {1, 1}, {2, 2}, {3, 2}}, {{1, 1}, {2, 2}, {3, 2}, {5, 9}}};
  const auto figures = stream_figures(streams);
  ASSERT_TRUE(figures);
  EXPECT_DOUBLE_EQ(figures->rate, 4);
  EXPECT_DOUBLE_EQ(figures->token_seconds, 0.5);
  EXPECT_DOUBLE_EQ(figures->longest_wait, 1);
}

TEST(Streams, AReaderThatIsLateForTheWindowCountsFromItsNextTokens) {
  const Streams streams = {{{0.9, 1}, {2, 4}, {4, 4}}, {{1, 1}, {2, 4}, {4, 4}}};
  const auto figures = stream_figures(streams);
  ASSERT_TRUE(figures);
  EXPECT_DOUBLE_EQ(figures->rate, 4.0 / 2 + 8.0 / 3);
  EXPECT_DOUBLE_EQ(figures->longest_wait, 2);
}

TEST(Streams, WithoutTwoArrivalsTogetherThereIsNoFigure) {
  EXPECT_FALSE(stream_figures(Streams{{{0, 1}}}));
  EXPECT_FALSE(stream_figures(Streams{{{0, 1}, {1, 1}}, {}}));
  EXPECT_FALSE(stream_figures(Streams{{{0, 1}, {1, 1}}, {{1, 1}, {2, 1}}}));
  EXPECT_FALSE(stream_figures(Streams{{{0, 1}, {1, 1}}, {{2, 1}, {3, 1}}}));
}

}  // namespace
}  // namespace doppler::bench
