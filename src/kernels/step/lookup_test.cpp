// The drafter lookup against a search by the host that follows the words of lookup.h.
#include "kernels/step/lookup.h"

#include <algorithm>
#include <random>

#include "kernels/step/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

using Tokens = std::vector<uint32_t>;
constexpr uint32_t kVocab = 50;

// `before`: tokens that the drafter searches too. The last token of `text` is the last choice.
Tokens drafts_of(const Tokens& before, const Tokens& text, uint32_t most) {
  Tokens all = before;
  all.insert(all.end(), text.begin(), text.end());
  const size_t end = all.size() - 1;
  size_t best_length = 0, best_at = 0;
  for (size_t j = 0; j < end; ++j) {
    size_t length = 0;
    while (length < kLongestMatch && length <= j && all[j - length] == all[end - length]) ++length;
    if (length >= kLeastMatch && length >= best_length) best_length = length, best_at = j;
  }
  Tokens out;
  for (size_t i = 1; best_length != 0 && i <= most; ++i) {
    const uint32_t draft = best_at + i <= end ? all[best_at + i] : out[best_at + i - end - 1];
    if (draft >= kVocab) break;
    out.push_back(draft);
  }
  return out;
}

struct Lookup {
  KernelRun run;
  uint32_t rows, places;
  TensorView text, ring;

  Lookup(const Policy& policy, uint32_t of_rows, uint32_t of_text, bool fills = false, bool from_ring = false)
      : run(policy, of_rows),
        rows(of_rows),
        places(of_text),
        text(run.inout(Tokens(text_words(of_text)))),
        ring(run.inout(Tokens(kTokenRing))) {
    EXPECT_TRUE(run.record([&](Context& ctx) {
      if (from_ring) return record(ctx, TextFromRing{.text = text, .ring = ring});
      return record(ctx, LookupDrafts{.text = text, .vocab_size = kVocab, .rows = rows, .fills = fills});
    }));
  }
  Tokens words() { return run.read<uint32_t>(text, text_words(places)); }
  // The rows of the step.
  Tokens drafts(const Tokens& before, const Tokens& tokens, uint32_t ctx_len,
                uint32_t stop_reason = kRunning) {
    Tokens given(text_words(places));
    given[kTextBase] = static_cast<uint32_t>(before.size());
    std::ranges::copy(before, given.begin() + kTextTokens);
    std::ranges::copy(tokens, given.begin() + kTextTokens + static_cast<ptrdiff_t>(before.size()));
    run.overwrite(text, given);
    run.state = {.pos = static_cast<uint32_t>(tokens.size()) - 1,
                 .rows = 1,
                 .ctx_len = ctx_len,
                 .stop_reason = stop_reason};
    run.replay(rows);
    const Tokens all = words();
    EXPECT_EQ(all[kTextBest], 0u);
    const auto first = all.begin() + kTextRows;
    return {first, first + run.state.rows};
  }
};

Tokens step_of(const Tokens& before, const Tokens& text, uint32_t rows) {
  Tokens out = {text.back()};
  const Tokens drafts = drafts_of(before, text, rows - 1);
  out.insert(out.end(), drafts.begin(), drafts.end());
  return out;
}

TEST(LookupDrafts, AreWhatFollowedTheLongestMatch) {
  for_each_variant("lookup_drafts", lookup_drafts_variants(), [](const Policy& policy) {
    std::mt19937 random(11);
    for (const uint32_t rows : {2u, 4u, 8u}) {
      Lookup lookup(policy, rows, 9000);
      for (const uint32_t vocab : {1u, 2u, 3u, 5u, 20u}) {
        for (const uint32_t length : {1u, 2u, 4u, 5u, 40u, 700u, 8200u}) {
          Tokens before(random() % 60), text(length);
          for (uint32_t& token : before) token = static_cast<uint32_t>(random() % vocab);
          for (uint32_t& token : text) token = static_cast<uint32_t>(random() % vocab);
          before.push_back(kNoToken);
          EXPECT_EQ(lookup.drafts(before, text, 100000), step_of(before, text, rows))
              << rows << " rows, " << vocab << " tokens, " << length;
        }
      }
    }
  });
}

TEST(LookupDrafts, TheLatestOfTheLongestWins) {
  Lookup lookup(Policy{}, 4, 100);
  //                 a          b (latest)  longer     the end
  const Tokens text = {1, 2, 3, 9, 1, 2, 3, 8, 7, 1, 2, 3, 6, 1, 2, 3};
  EXPECT_EQ(lookup.drafts({}, text, 1000), (Tokens{3, 6, 1, 2}));
  const Tokens longer = {7, 1, 2, 3, 9, 4, 4, 1, 2, 3, 6, 7, 1, 2, 3};
  EXPECT_EQ(lookup.drafts({}, longer, 1000), (Tokens{3, 9, 4, 4}));
}

TEST(LookupDrafts, ArePredictedByWhatStandsBeforeTheText) {
  Lookup lookup(Policy{}, 4, 100);
  EXPECT_EQ(lookup.drafts({5, 1, 2, 3, 7, kNoToken}, {9, 1, 2, 3}, 1000), (Tokens{3, 7}));
}

TEST(LookupDrafts, EndWithTheContextAndTheGeneration) {
  Lookup lookup(Policy{}, 8, 100);
  const Tokens text(20, 4);
  EXPECT_EQ(lookup.drafts({}, text, 22), (Tokens{4, 4, 4}));
  EXPECT_EQ(lookup.drafts({}, text, 20), Tokens{4});
  EXPECT_EQ(lookup.drafts({}, text, 1000, kStopToken), Tokens{4});
}

TEST(LookupDrafts, FillsAllRowsForMeasurements) {
  Lookup lookup(Policy{}, 4, 100, /*fills=*/true);
  EXPECT_EQ(lookup.drafts({}, {1, 2, 3}, 1000), (Tokens{3, 3, 3, 3}));
  EXPECT_EQ(lookup.drafts({}, {1, 2, 3}, 4), (Tokens{3, 3}));
}

TEST(TextFromRing, TakesWhatPlainStepsChose) {
  for (const uint32_t length : {0u, 7u, 30u}) {
    Lookup text(Policy{}, 2, 6000, false, /*from_ring=*/true);
    Tokens given(text_words(6000)), ring(kTokenRing);
    given[kTextBase] = 2;
    given[kTextLength] = length;
    given[kTextWritten] = 9;
    for (uint32_t i = 0; i < kTokenRing; ++i) ring[i] = i % kVocab;
    text.run.overwrite(text.text, given);
    text.run.overwrite(text.ring, ring);
    text.run.state = {.pos = 20, .ctx_len = 100, .ring_index = kTokenRing + 5};  // goes around the ring's end
    text.run.replay(1);
    Tokens want = given;
    want[kTextLength] = 21;
    for (uint32_t pos = std::max(9u, length); pos <= 20; ++pos) {
      want[kTextTokens + 2 + pos] = ring[(kTokenRing + 5 - 1 - (20 - pos)) % kTokenRing];
    }
    EXPECT_EQ(text.words(), want) << length;
    text.run.overwrite(text.text, given);
    text.run.state.stop_reason = kTokenLimit;
    text.run.replay(1);
    EXPECT_EQ(text.words(), given);
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
