// child_process.h with programs that every system has.
#include "base/child_process.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace doppler {
namespace {

#ifdef _WIN32
const std::vector<std::string> kTwoLines = {"cmd", "/c", "echo one&echo two"};
#else
const std::vector<std::string> kTwoLines = {"sh", "-c", "echo one; printf two"};
#endif

TEST(ChildProcess, GivesItsOutputByLines) {
  auto child = ChildProcess::start(kTwoLines);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->line(), "one");
  EXPECT_EQ(child->line(), "two");
  EXPECT_FALSE(child->line());
  EXPECT_FALSE(child->line());
}

TEST(ChildProcess, EndsWithItsReader) {
  auto child = ChildProcess::start(kTwoLines);
  ASSERT_TRUE(child);
}

TEST(ChildProcess, ThatIsNotThereIsRefused) {
  EXPECT_FALSE(ChildProcess::start({"doppler-no-such-program"}));
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace doppler
