// The past of rows with drafts, against the rules of step.h and more.h, token by token.
#include "kernels/step/draft_past.h"

#include <random>

#include "kernels/step/step.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 300, kRows = 8;
using Words = std::vector<uint32_t>;

Words text_with(const Words& rows) {
  Words text(text_words(1));
  std::ranges::copy(rows, text.begin() + kTextRows);
  return text;
}

TEST(DraftCounts, AreThoseOfTheTextWithTheDrafts) {
  std::mt19937 random(5);
  KernelRun run(Policy{}, kRows);
  const DraftCounts op{.text = run.inout(text_with({})),
                       .counts = run.input(Words(kVocab)),
                       .recent = run.input(Words(kPenaltyRing)),
                       .out = run.output(kRows * kVocab * 4),
                       .vocab_size = kVocab,
                       .rows = kRows};
  ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
  for (const uint32_t rows : {1u, 5u, kRows}) {
    Words drafts(kRows), recent(kPenaltyRing), counts(kVocab);
    for (uint32_t& token : drafts) token = static_cast<uint32_t>(random() % 6);
    for (uint32_t& token : recent) {
      token = static_cast<uint32_t>(random() % 6);
      ++counts[token];
    }
    run.overwrite(op.text, text_with(drafts));
    run.overwrite(op.recent, recent);
    run.overwrite(op.counts, counts);
    run.state = {.pos = 100, .rows = rows};
    run.replay(rows);
    const Words got = run.read<uint32_t>(op.out, uint64_t{kRows} * kVocab);
    for (uint32_t row = 0; row < rows; ++row) {
      if (row > 0) {
        uint32_t& place = recent[(100 + row) % kPenaltyRing];
        --counts[place];
        place = drafts[row];
        ++counts[place];
      }
      const auto first = got.begin() + static_cast<ptrdiff_t>(row) * kVocab;
      EXPECT_EQ(Words(first, first + kVocab), counts) << row;
    }
  }
}

TEST(DraftMore, HasTheDraftsBehindItsHistory) {
  constexpr uint32_t kWords = sizeof(MoreState) / 4;
  const auto words_of = [](const MoreState& state) {
    Words out(kWords);
    std::memcpy(out.data(), &state, sizeof(state));
    return out;
  };
  const Words drafts = {50, 51, 52, 53, 54, 55, 56, 57};
  for (const uint32_t count : {0u, 7u, kDryHistory - 3, 5 * kDryHistory + 2}) {
    KernelRun run(Policy{}, kRows);
    MoreState before{.mu = 3.5f, .count = count};
    for (uint32_t i = 0; i < kDryHistory; ++i) before.history[i] = i % 40;
    const TensorView text = run.inout(text_with(drafts)), more = run.inout(words_of(before)),
                     rows = run.output(kRows * sizeof(MoreState));
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(record(ctx, DraftMore{.text = text, .more = more, .out = rows, .rows = kRows}));
      return record(ctx, KeptMore{.past = rows, .more = more, .rows = kRows});
    }));
    run.state = {.pos = 9, .rows = kRows, .kept_row = 5};
    run.replay(kRows);
    const Words got = run.read<uint32_t>(rows, uint64_t{kRows} * kWords);
    MoreState want = before;
    for (uint32_t row = 0; row < kRows; ++row) {
      if (row > 0) want.history[want.count++ % kDryHistory] = drafts[row];
      const auto first = got.begin() + static_cast<ptrdiff_t>(row) * kWords;
      EXPECT_EQ(Words(first, first + kWords), words_of(want)) << count << ", " << row;
      if (row == 5) {
        EXPECT_EQ(run.read<uint32_t>(more, kWords), words_of(want));
      }
    }
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
