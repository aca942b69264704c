// Tests the refusals of a generation before there is a model.
#include <gtest/gtest.h>

#include "doppler/doppler.h"

namespace doppler {
namespace {

TEST(GenerateOptions, AreCheckedWithoutAModel) {
  GenerateOptions options{.max_tokens = 5};
  options.sampling.min_tokens = 5;
  EXPECT_TRUE(check_options(options));
  options.sampling.min_tokens = 6;
  EXPECT_EQ(check_options(options).error().message(),
            "Option min-tokens is 6 and an answer has at most 5 tokens; allowed is 0 to 5.");
  options.max_tokens = 0;  // no limit
  EXPECT_TRUE(check_options(options));
  options.grammar.kind = GrammarKind::kRegex;
  EXPECT_FALSE(check_options(options));
}

TEST(GenerateOptions, AnEmptyStopTextIsRefused) {
  EXPECT_TRUE(check_options({.stop = {"a"}}));
  EXPECT_EQ(check_options({.stop = {"a", ""}}).error().message(),
            "Option stop is an empty text; allowed are texts that are not empty.");
}

}  // namespace
}  // namespace doppler
