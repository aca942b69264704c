// Argmax: vocabularies around a segment's length, ties, and the values that comparisons of floats get wrong.
#include <algorithm>
#include <limits>

#include "kernels/sample/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void expect_argmax(const std::vector<float>& logits, uint32_t want) {
  for_each_variant("argmax", argmax_variants(), [&](const Policy& policy) {
    KernelRun run(policy);
    const TensorView token = run.output(4);
    const Sample op{.logits = run.input(logits),
                    .token = token,
                    .vocab_size = static_cast<uint32_t>(logits.size()),
                    .greedy = true};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay();
    EXPECT_EQ(run.read<uint32_t>(token, 1)[0], want) << logits.size() << " logits";
  });
}

TEST(Argmax, FindsTheHighestOfAnyVocabulary) {
  for (const uint32_t vocab : {1u, 31u, 1024u, 1025u, 128256u, kMaxVocab}) {
    const std::vector<float> logits = random_floats(vocab, vocab);
    expect_argmax(logits,
                  static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
}

TEST(Argmax, TheLastTokenCanWin) {
  std::vector<float> logits(5000, -3);
  logits.back() = -2.999f;
  expect_argmax(logits, 4999);
}

TEST(Argmax, TheLowestIdWinsATie) {
  std::vector<float> logits(3000, 1.5f);
  expect_argmax(logits, 0);
  logits[0] = 0;
  expect_argmax(logits, 1);
  logits[1] = 1;
  logits[2500] = logits[1100] = 2;
  expect_argmax(logits, 1100);
  expect_argmax({-1, -0.0f, 0.0f, -0.0f}, 1);
}

TEST(Argmax, NanNeverWins) {
  expect_argmax({kNan, -kInf, -5, kNan, -6, -kNan}, 2);
  expect_argmax({-kInf, -3e38f, -kInf}, 1);
}

TEST(Argmax, BrokenLogitsGiveNoToken) {
  expect_argmax({kNan, -kInf, kNan}, kNotFinite);
  expect_argmax({kNan, kNan}, kNotFinite);
  expect_argmax({1, kInf, 3e38f}, kNotFinite);
}

TEST(Argmax, EachRowHasItsOwn) {
  std::vector<float> logits = random_floats(2 * 1500, 8);
  logits[1203] = 900;
  logits[1500 + 700] = kNan;
  logits[1500 + 64] = 900;
  for_each_variant("argmax", argmax_variants(), [&](const Policy& policy) {
    KernelRun run(policy, 2);
    const TensorView token = run.output(8);
    const Sample op{
        .logits = run.input(logits), .token = token, .vocab_size = 1500, .rows = 2, .greedy = true};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(1);  // a step of one row has a choice for the second one all the same
    EXPECT_EQ(run.read<uint32_t>(token, 2), (std::vector<uint32_t>{1203, 64}));
  });
}

TEST(Sample, RefusesWhatItCannotHold) {
  KernelRun run;
  const TensorView any = run.input(std::vector<float>(64));
  const auto error = [&](const Sample& op) {
    const Result<void> recorded = run.try_record([&](Context& ctx) { return record(ctx, op); });
    return recorded ? "" : recorded.error().sentence();
  };
  EXPECT_EQ(error({.logits = any, .token = any, .vocab_size = kMaxVocab + 1, .greedy = true}),
            "Vocabulary of 524289 tokens; sampling takes 1 to 524288.");
  EXPECT_EQ(error({.logits = any, .token = any, .vocab_size = 64, .logit_scale = 0}),
            "Logit scale (0) must be above 0 and softcap (0) at least 0.");
  EXPECT_EQ(error({.logits = any, .token = any, .vocab_size = 65, .greedy = true}),
            "logits of sample has 256 bytes; 260 are needed.");
  EXPECT_EQ(error({.logits = any, .token = any, .vocab_size = 35, .rows = 2, .greedy = true}),
            "logits of sample has 256 bytes; 280 are needed.");
  EXPECT_EQ(error({.logits = any, .token = any, .vocab_size = 8, .rows = 0, .greedy = true}),
            "A choice for 0 rows; at least 1 is allowed.");
  EXPECT_EQ(error({.best = any, .best_count = 2, .token = any, .vocab_size = 8, .rows = 2, .greedy = true}),
            "Choices for 2 rows go without the bests of tiles.");
}

}  // namespace
}  // namespace doppler::kernels::testing
