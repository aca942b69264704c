// Texts that end an answer, over pieces of text.
#include "engine/stop_strings.h"

#include <gtest/gtest.h>

namespace doppler::engine {
namespace {

TEST(StopStrings, HoldsBackWhatMayBecomeAStop) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.push("one E"), "one ");
  EXPECT_EQ(stops.push("N"), "");
  EXPECT_EQ(stops.push("X\n"), "ENX");
  EXPECT_EQ(stops.push("two\n\nthree"), "\ntwo");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("more"), "");
}

}  // namespace
}  // namespace doppler::engine
