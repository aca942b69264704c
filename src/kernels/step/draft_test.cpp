// Drafting steps against the rules of draft.h and step.h, word for word.
#include "kernels/step/draft.h"

#include <algorithm>
#include <random>

#include "kernels/step/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 20, kRingEntries = 64;
constexpr uint32_t kBase = 3, kTextPlaces = 1100;  // tokens before the text, and of it

// The state that steps of one sequence keep, moved on by the rules of step.h, a choice at a time.
struct Kept {
  StepState state;
  std::vector<uint32_t> counts = std::vector<uint32_t>(kVocab);
  std::vector<uint32_t> recent = std::vector<uint32_t>(kPenaltyRing, kNoToken);
  std::vector<uint32_t> ring = std::vector<uint32_t>(kRingEntries, kPoison);
  std::vector<uint32_t> token = {4};
  std::vector<uint32_t> drafts = {kPoison, 5};  // the rows of the text
  std::vector<uint32_t> text = std::vector<uint32_t>(kTextPlaces, kPoison);
  uint32_t length = 0;

  void write(uint32_t entry) { ring.at(state.ring_index++ % kTokenRing) = entry; }
  void choose(uint32_t t) {
    write(t);
    ++state.pos;
    ++state.generated;
    uint32_t& place = recent[state.pos % kPenaltyRing];
    if (place < kVocab && counts[place] > 0) --counts[place];
    place = t;
    if (t < kVocab) ++counts[t];
    const uint32_t* const end = state.stop_tokens + state.stop_token_count;
    if (state.ignore_stop == 0 && std::find<const uint32_t*>(state.stop_tokens, end, t) != end) {
      state.stop_reason = kStopToken;
    } else if (state.generated >= state.max_generated) {
      state.stop_reason = kTokenLimit;
    } else if (state.pos >= state.ctx_len) {
      state.stop_reason = kContextFull;
    }
  }
  void begin() {
    drafts[0] = token[0];
    state.rows = state.stop_reason == kRunning && state.pos + 1 < state.ctx_len ? 2 : 1;
  }
  void end(const std::vector<uint32_t>& choices, const std::vector<uint32_t>& next) {
    const bool was_running = state.stop_reason == kRunning;
    const uint32_t begun_rows = state.rows;
    uint32_t last = 0;
    bool counts_too = was_running;
    for (uint32_t i = 0; i < choices.size(); ++i) {
      const bool is_right =
          i == 0 || (i < state.rows && choices[i - 1] == drafts[i] && choices[i - 1] < kVocab);
      counts_too = counts_too && is_right && state.stop_reason == kRunning;
      if (!counts_too) {
        write(state.stop_reason != kRunning ? kNoToken : i >= begun_rows ? kNoDraft : kRejected);
        continue;
      }
      choose(choices[i]);
      text.at(kBase + state.pos) = choices[i];
      length = state.pos + 1;
      last = i;
    }
    if (!was_running) return;
    token[0] = choices[last];
    if (!next.empty()) drafts[1] = next[last];
    state.kept_row = last;
    state.rows = 1;
  }
};

struct Drafting {
  KernelRun run;
  Kept want;
  uint32_t rows;
  bool has_next;
  TensorView token = run.inout(want.token),
             text = run.inout(std::vector<uint32_t>(kTextTokens + kTextPlaces));
  TensorView choices, next;
  TensorView ring = run.output(kTokenRing * 4), counts = run.inout(want.counts),
             recent = run.inout(want.recent);
  bool is_end;

  // A plan of the begin, or of the end.
  explicit Drafting(bool end, uint32_t of_rows = 2, bool with_next = true, float simulated = -1)
      : run(Policy{}, of_rows),
        rows(of_rows),
        has_next(with_next),
        choices(run.input(std::vector<uint32_t>(of_rows))),
        next(run.input(std::vector<uint32_t>(of_rows))),
        is_end(end) {
    want.state = {.pos = 10, .rows = 1, .ctx_len = 1000, .max_generated = 1000};
    EXPECT_TRUE(run.record([&](Context& ctx) {
      if (!end) return record(ctx, DraftBegin{.token = token, .text = text});
      return record(ctx, DraftEnd{.choices = choices,
                                  .text = text,
                                  .next = has_next ? next : TensorView{},
                                  .token = token,
                                  .ring = ring,
                                  .counts = counts,
                                  .recent = recent,
                                  .vocab_size = kVocab,
                                  .rows = rows,
                                  .simulated = simulated});
    }));
  }
  void write_text() {
    std::vector<uint32_t> words(kTextTokens + kTextPlaces);
    words[kTextBase] = kBase;
    words[kTextLength] = want.length;
    std::ranges::copy(want.drafts, words.begin() + kTextRows);
    std::ranges::copy(want.text, words.begin() + kTextTokens);
    run.overwrite(text, words);
  }
  void expect_as_wanted() {
    EXPECT_EQ(run.state.rows, want.state.rows);
    EXPECT_EQ(run.state.pos, want.state.pos);
    EXPECT_EQ(run.state.generated, want.state.generated);
    EXPECT_EQ(run.state.stop_reason, want.state.stop_reason);
    EXPECT_EQ(run.state.ring_index, want.state.ring_index);
    EXPECT_EQ(run.state.kept_row, want.state.kept_row);
    EXPECT_EQ(std::memcmp(&run.state, &want.state, sizeof(StepState)), 0);
    EXPECT_EQ(run.read<uint32_t>(token, 1), want.token);
    const std::vector<uint32_t> words = run.read<uint32_t>(text, kTextTokens + kTextPlaces);
    EXPECT_TRUE(std::ranges::equal(want.drafts, std::span(words).subspan(kTextRows, want.drafts.size())));
    EXPECT_TRUE(std::ranges::equal(want.text, std::span(words).subspan(kTextTokens)));
    EXPECT_EQ(words[kTextLength], want.length);
    EXPECT_EQ(run.read<uint32_t>(ring, kRingEntries), want.ring);
    EXPECT_EQ(run.read<uint32_t>(counts, kVocab), want.counts);
    EXPECT_EQ(run.read<uint32_t>(recent, kPenaltyRing), want.recent);
  }
  void begin() {
    write_text();
    run.state = want.state;
    const uint32_t of_state = run.state.rows;
    run.replay(of_state);
    want.begin();
    expect_as_wanted();
  }
  void end(const std::vector<uint32_t>& chosen, const std::vector<uint32_t>& drafted = {8, 9}) {
    write_text();
    run.overwrite(choices, chosen);
    if (has_next) run.overwrite(next, drafted);
    run.state = want.state;
    const uint32_t of_state = run.state.rows;
    run.replay(of_state);
    want.end(chosen, has_next ? drafted : std::vector<uint32_t>{});
    expect_as_wanted();
  }
  uint32_t last_entry(uint32_t back) { return want.ring.at(want.state.ring_index - back); }
};

// A drafting step whose begin the test writes itself.
struct Ends : Drafting {
  explicit Ends(uint32_t of_rows = 2) : Drafting(true, of_rows, of_rows == 2) {
    if (of_rows > 2) want.drafts = std::vector<uint32_t>(of_rows, 5);
    begin_with(of_rows);
  }
  void begin_with(uint32_t of_step) {
    want.drafts[0] = want.token[0];
    want.state.rows = of_step;
  }
};

TEST(DraftBegin, HasTwoRows) {
  Drafting draft(false);
  draft.begin();
  EXPECT_EQ(draft.run.state.rows, 2u);
  EXPECT_EQ(draft.want.drafts, (std::vector<uint32_t>{4, 5}));
}

TEST(DraftBegin, TheLastPlaceOfTheContextIsForTheToken) {
  Drafting draft(false);
  draft.want.state.ctx_len = 12;
  draft.begin();
  EXPECT_EQ(draft.run.state.rows, 2u);
  draft.want.state.ctx_len = 11;
  draft.begin();
  EXPECT_EQ(draft.run.state.rows, 1u);
}

TEST(DraftBegin, AStoppedGenerationHasOneRow) {
  Drafting draft(false);
  draft.want.state.stop_reason = kTokenLimit;
  draft.want.state.kept_row = 1;
  draft.begin();
  EXPECT_EQ(draft.run.state.rows, 1u);
}

TEST(DraftEnd, ARightDraftCountsTwice) {
  Ends ends;
  ends.end({5, 7});
  EXPECT_EQ(ends.run.state.pos, 12u);
  EXPECT_EQ(ends.run.state.generated, 2u);
  EXPECT_EQ(ends.run.state.kept_row, 1u);
  EXPECT_EQ(ends.want.token[0], 7u);
  EXPECT_EQ(ends.want.drafts[1], 9u);
  EXPECT_EQ(ends.last_entry(2), 5u);
  EXPECT_EQ(ends.last_entry(1), 7u);
}

TEST(DraftEnd, AWrongDraftIsRejected) {
  Ends ends;
  ends.want.state.kept_row = 1;
  ends.end({6, 7});
  EXPECT_EQ(ends.run.state.pos, 11u);
  EXPECT_EQ(ends.run.state.kept_row, 0u);
  EXPECT_EQ(ends.want.token[0], 6u);
  EXPECT_EQ(ends.want.drafts[1], 8u);
  EXPECT_EQ(ends.last_entry(2), 6u);
  EXPECT_EQ(ends.last_entry(1), kRejected);
}

TEST(DraftEnd, AStopTokenInEitherRowStops) {
  for (const bool in_first : {true, false}) {
    SCOPED_TRACE(in_first);
    Ends ends;
    ends.want.state.stop_token_count = 1;
    ends.want.state.stop_tokens[0] = in_first ? 5 : 7;
    ends.end({5, 7});
    EXPECT_EQ(ends.run.state.stop_reason, kStopToken);
    EXPECT_EQ(ends.last_entry(1), in_first ? kNoToken : 7u);
    EXPECT_EQ(ends.run.state.kept_row, in_first ? 0u : 1u);
    ends.begin_with(1);
    ends.end({3, 3});
    EXPECT_EQ(ends.last_entry(2), kNoToken);
    EXPECT_EQ(ends.last_entry(1), kNoToken);
  }
}

TEST(DraftEnd, AWrongDraftBehindAStopTokenIsNoToken) {
  Ends ends;
  ends.want.state.stop_token_count = 1;
  ends.want.state.stop_tokens[0] = 6;
  ends.end({6, 7});
  EXPECT_EQ(ends.last_entry(1), kNoToken);
}

TEST(DraftEnd, TheTokenLimitStopsInEitherRow) {
  for (const uint32_t limit : {1u, 2u}) {
    Ends ends;
    ends.want.state.max_generated = limit;
    ends.end({5, 7});
    EXPECT_EQ(ends.run.state.stop_reason, kTokenLimit);
    EXPECT_EQ(ends.run.state.generated, limit);
  }
}

TEST(DraftEnd, AFullContextStopsInEitherRow) {
  Ends ends;
  ends.want.state.ctx_len = 12;
  ends.end({5, 7});
  EXPECT_EQ(ends.run.state.stop_reason, kContextFull);
  EXPECT_EQ(ends.last_entry(1), 7u);
  Ends last;
  last.want.state.ctx_len = 11;
  last.begin_with(1);
  last.end({5, 7});
  EXPECT_EQ(last.run.state.stop_reason, kContextFull);
  EXPECT_EQ(last.last_entry(1), kNoToken);
}

TEST(DraftEnd, OneRowHasNoSecondChoice) {
  Ends ends;
  ends.begin_with(1);
  ends.end({5, 7});
  EXPECT_EQ(ends.run.state.pos, 11u);
  EXPECT_EQ(ends.last_entry(1), kNoDraft);
}

TEST(DraftEnd, BrokenLogitsAreNoRightDraft) {
  Ends ends;
  ends.want.drafts[1] = kNotFinite;
  ends.begin_with(2);
  ends.end({kNotFinite, 7});
  EXPECT_EQ(ends.last_entry(2), kNotFinite);
  EXPECT_EQ(ends.last_entry(1), kRejected);
}

TEST(DraftEnd, PenaltiesFollowTheTokensThatCount) {
  Ends ends;
  std::mt19937 random(3);
  const auto any = [&] { return static_cast<uint32_t>(random() % kVocab); };
  ends.want.state.ring_index = 4 * kTokenRing;  // the count runs freely
  for (uint32_t i = 0; i < kRingEntries / 2; ++i) {
    const uint32_t first = i % 3 == 0 ? any() : ends.want.drafts[1];
    ends.begin_with(2);
    ends.end({first, any()}, {any(), any()});
  }
  EXPECT_GT(ends.want.state.generated, kRingEntries * 3 / 4 - 8);
}

// The entries, the state and the text follow the rules, wherever the text and the ring lie.
TEST(DraftEnd, SeveralDraftsCountAsFarAsTheyAreRight) {
  std::mt19937 random(7);
  for (const uint32_t rows : {4u, 8u}) {
    Ends ends(rows);
    ends.want.state.stop_token_count = 1;
    ends.want.state.stop_tokens[0] = 13;
    const uint32_t trials = kRingEntries / rows;
    for (uint32_t trial = 0; trial < trials && !HasFailure(); ++trial) {
      const auto right = static_cast<uint32_t>(random() % rows);
      std::vector<uint32_t> chosen(rows);
      for (uint32_t i = 0; i < rows; ++i) {
        ends.want.drafts[i] = static_cast<uint32_t>(random() % 12);
        chosen[i] = 19;
        if (i > 0 && i <= right) chosen[i - 1] = ends.want.drafts[i];
      }
      if (trial + 2 == trials) chosen[right] = 13;
      ends.begin_with(trial == 3 ? 2 : rows);
      ends.end(chosen);
    }
    EXPECT_EQ(ends.want.state.stop_reason, kStopToken);
    EXPECT_EQ(ends.last_entry(1), kNoToken);
  }
}

TEST(DraftEnd, SimulatedDraftsAreRightByChance) {
  Drafting ends(true, 4, false, 0.75f);
  ends.want.drafts = std::vector<uint32_t>(4, 5);
  ends.run.overwrite(ends.choices, std::vector<uint32_t>{6, 6, 6, 6});
  uint32_t right = 0, seen = 0;
  for (uint32_t step = 0; step < 40; ++step) {
    ends.run.state = {.pos = 10, .rows = 4, .ctx_len = 1000, .generated = step * 4, .max_generated = 1000};
    ends.run.replay(4);
    const uint32_t counted = ends.run.state.pos - 10;
    right += counted - 1;
    seen += std::min(counted, 3u);
  }
  EXPECT_NEAR(static_cast<double>(right) / seen, 0.75, 0.12);
}

TEST(GivenDrafts, HaveARowEach) {
  KernelRun run(Policy{}, 4);
  const TensorView text = run.inout(std::vector<uint32_t>(kTextTokens + 8));
  ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, GivenDrafts{.text = text, .rows = 4}); }));
  const auto rows_of = [&](uint32_t given, uint32_t ctx_len, uint32_t stop_reason) {
    std::vector<uint32_t> words(kTextTokens + 8);
    words[kTextGiven] = given;
    run.overwrite(text, words);
    run.state = {.pos = 10, .ctx_len = ctx_len, .stop_reason = stop_reason};
    run.replay(4);
    return run.state.rows;
  };
  EXPECT_EQ(rows_of(0, 100, kRunning), 1u);
  EXPECT_EQ(rows_of(2, 100, kRunning), 3u);
  EXPECT_EQ(rows_of(9, 100, kRunning), 4u);
  EXPECT_EQ(rows_of(3, 12, kRunning), 2u);
  EXPECT_EQ(rows_of(3, 10, kRunning), 1u);
  EXPECT_EQ(rows_of(3, 100, kStopToken), 1u);
}

// A step of one row and a chunk of the prompt leave the state in slot 0.
TEST(Step, LeavesTheStateOfRowZero) {
  for (const bool has_token : {true, false}) {
    KernelRun run(Policy{}, 3);
    const Step op{.token = has_token ? run.input(std::vector<uint32_t>{7}) : TensorView{},
                  .ring = run.output(kTokenRing * 4),
                  .counts = run.inout(std::vector<uint32_t>(kVocab)),
                  .recent = run.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken)),
                  .vocab_size = kVocab};
    ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
    run.state = {.ctx_len = 100, .max_generated = 100, .stop_reason = kStopToken, .kept_row = 1};
    run.replay(1);
    EXPECT_EQ(run.state.kept_row, 1u);
    run.state.stop_reason = kRunning;
    run.replay(1);
    EXPECT_EQ(run.state.kept_row, 0u);
  }
}

TEST(Draft, IsOfOneSequence) {
  KernelRun run;
  const TensorView any = run.input(std::vector<uint32_t>(64));
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    ctx.tables.sequences = 3;
    return record(ctx, DraftBegin{.token = any, .text = any});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "draft_begin is of plans of one sequence, not of 3.");
}

}  // namespace
}  // namespace doppler::kernels::testing
