// Steps that several devices work on at a time.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::text;

// A device works on a prompt's next piece, or on the next step, while another one works on this.
TEST(StepsAtOnce, MoreTicketsAreAheadIfSeveralDevicesWork) {
  Script pieces({.ctx_len = 200, .rows = 8, .tickets = 8, .at_once = 3});
  pieces.submit(ask(text(100), 2));
  pieces.run();
  EXPECT_EQ(pieces.runner.most_outstanding, 4u);
  Script steps({.ctx_len = 200, .steps = 4, .tickets = 3, .at_once = 3});
  steps.submit(ask(text(3), 100));
  steps.run();
  EXPECT_EQ(steps.runner.most_outstanding, 3u);
}

}  // namespace
}  // namespace doppler::engine
