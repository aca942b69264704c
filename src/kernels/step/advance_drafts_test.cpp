// The end of a step of many sequences with drafts, and the past of its rows: each slot against the kernels of one
// sequence over the same rows.
#include "kernels/step/advance_drafts.h"

#include <memory>
#include <random>

#include "kernels/step/draft.h"
#include "kernels/step/draft_past.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

using Words = std::vector<uint32_t>;

constexpr uint32_t kDraftVocab = 30, kMostOfSlot = 4, kMostOfStep = 16;
constexpr StepTables kDraftTables{.sequences = 5, .rows = 100, .blocks = 7, .block_len = 16};
constexpr uint32_t kStateWords = sizeof(MoreState) / 4;

Words words_of(const MoreState& state) {
  Words out(kStateWords);
  std::memcpy(out.data(), &state, sizeof(state));
  return out;
}

Words part(const Words& all, size_t i, size_t size) {
  return {all.begin() + static_cast<ptrdiff_t>(i * size),
          all.begin() + static_cast<ptrdiff_t>((i + 1) * size)};
}

// A slot by itself: a plan of one sequence.
struct OneSlot {
  KernelRun run{Policy{}, kMostOfSlot};
  TensorView text = run.inout(Words(kTextTokens + 300)), choices = run.inout(Words(kMostOfSlot)),
             token = run.inout(Words(1)), ring = run.output(kTokenRing * 4),
             counts = run.inout(Words(kDraftVocab)), recent = run.inout(Words(kPenaltyRing, kNoToken)),
             more = run.inout(Words(kStateWords)), row_counts = run.output(kMostOfSlot * kDraftVocab * 4),
             row_more = run.output(kMostOfSlot * sizeof(MoreState));
  OneSlot() {
    EXPECT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(record(ctx, DraftCounts{.text = text,
                                       .counts = counts,
                                       .recent = recent,
                                       .out = row_counts,
                                       .vocab_size = kDraftVocab,
                                       .rows = kMostOfSlot}));
      DP_CHECK(record(ctx, DraftMore{.text = text, .more = more, .out = row_more, .rows = kMostOfSlot}));
      DP_CHECK(record(ctx, DraftEnd{.choices = choices,
                                    .text = text,
                                    .next = {},
                                    .token = token,
                                    .ring = ring,
                                    .counts = counts,
                                    .recent = recent,
                                    .vocab_size = kDraftVocab,
                                    .rows = kMostOfSlot}));
      return record(ctx, KeptMore{.past = row_more, .more = more, .rows = kMostOfSlot});
    }));
  }
};

// Rows of a slot: its last choice and its drafts, and what each row chooses.
struct SlotRows {
  uint32_t slot = 0;
  Words rows, choices;
};

struct DraftsRun {
  KernelRun run{Policy{}, kDraftTables.rows};
  TablesImage image{kDraftTables};
  TensorView state = run.inout(image.bytes), text = run.inout(Words(kTextTokens + 1)),
             choices = run.inout(Words(kMostOfStep)),
             ring = run.output(uint64_t{kStepRing} * kDraftTables.sequences * 4),
             counts = run.inout(Words(kDraftTables.sequences * kDraftVocab)),
             recent = run.inout(Words(kDraftTables.sequences * kPenaltyRing, kNoToken)),
             more = run.inout(Words(kDraftTables.sequences * kStateWords)),
             row_counts = run.output(kMostOfStep * kDraftVocab * 4),
             row_more = run.output(kMostOfStep * sizeof(MoreState));
  std::vector<std::unique_ptr<OneSlot>> alone;

  DraftsRun() {
    EXPECT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      Context many = with_tables(ctx, image, state);
      DP_CHECK(record(many, DraftCounts{.text = text,
                                        .counts = counts,
                                        .recent = recent,
                                        .out = row_counts,
                                        .vocab_size = kDraftVocab,
                                        .rows = kMostOfStep}));
      DP_CHECK(record(many, DraftMore{.text = text, .more = more, .out = row_more, .rows = kMostOfStep}));
      DP_CHECK(record(many, AdvanceDrafts{.choices = choices,
                                          .text = text,
                                          .ring = ring,
                                          .counts = counts,
                                          .recent = recent,
                                          .vocab_size = kDraftVocab,
                                          .rows = kMostOfStep}));
      return record(many, KeptMore{.past = row_more, .more = more, .rows = kMostOfStep});
    }));
    Words states;
    for (uint32_t slot = 0; slot < kDraftTables.sequences; ++slot) {
      MoreState of{.mu = 1.0f + static_cast<float>(slot), .count = 7 * slot};
      for (uint32_t i = 0; i < kDryHistory; ++i) of.history[i] = 100 * slot + i % 50;
      alone.push_back(std::make_unique<OneSlot>());
      alone[slot]->run.overwrite(alone[slot]->more, words_of(of));
      const Words words = words_of(of);
      states.insert(states.end(), words.begin(), words.end());
    }
    run.overwrite(more, states);
  }

  void begin(uint32_t slot, const SequenceRecord& record) {
    image.record(slot) = record;
    StepState& state_of_one = alone[slot]->run.state;
    state_of_one = {.pos = record.pos,
                    .ctx_len = record.ctx_len,
                    .max_generated = record.max_generated,
                    .stop_token_count = record.stop_token_count};
    std::ranges::copy(record.stop_tokens, state_of_one.stop_tokens);
  }

  // A step with these rows. Checks entries, records and pasts against each slot by itself.
  void step(const std::vector<SlotRows>& all) {
    Words tokens(kMaxSequences), chosen(kMostOfStep);
    uint32_t row = 0;
    for (const SlotRows& of : all) {
      for (uint32_t i = 0; i < of.rows.size(); ++i, ++row) {
        image.row(row) = {of.slot, image.record(of.slot).pos + i};
        image.sampled(row) = {of.slot, row};
        tokens[row] = of.rows[i];
        chosen[row] = of.choices[i];
      }
    }
    const uint32_t ring_index = image.state().ring_index;
    image.state().rows = image.sampled_state().rows = row;
    image.request().entries = kMostOfSlot;
    run.overwrite(state, image.bytes);
    Words whole(kTextTokens + 1);
    std::ranges::copy(tokens, whole.begin() + kTextRows);
    run.overwrite(text, whole);
    run.overwrite(choices, chosen);
    run.replay(row);
    image.bytes = run.read<uint8_t>(state, image.bytes.size());
    EXPECT_EQ(image.state().ring_index, ring_index + kMostOfSlot);
    std::vector<Words> entries(kDraftTables.sequences, Words(kMostOfSlot, kNoToken));
    uint32_t first = 0;
    for (const SlotRows& of : all) {
      entries[of.slot] = expect_same(of, first);
      first += static_cast<uint32_t>(of.rows.size());
    }
    const Words written = run.read<uint32_t>(ring, uint64_t{kStepRing} * kDraftTables.sequences);
    for (uint32_t slot = 0; slot < kDraftTables.sequences; ++slot) {
      for (uint32_t i = 0; i < kMostOfSlot; ++i) {
        const uint32_t at = (ring_index + i) % kStepRing;
        EXPECT_EQ(written[at * kDraftTables.sequences + slot], entries[slot][i]) << slot << " " << i;
      }
    }
  }

  // Returns the slot's entries.
  Words expect_same(const SlotRows& of, uint32_t first) {
    SCOPED_TRACE(of.slot);
    OneSlot& one = *alone[of.slot];
    Words whole(kTextTokens + 300), chosen(kMostOfSlot);
    std::ranges::copy(of.rows, whole.begin() + kTextRows);
    std::ranges::copy(of.choices, chosen.begin());
    one.run.overwrite(one.text, whole);
    one.run.overwrite(one.choices, chosen);
    one.run.state.rows = static_cast<uint32_t>(of.rows.size());
    const uint32_t ring_index = one.run.state.ring_index;
    one.run.replay(static_cast<uint32_t>(of.rows.size()));

    const StepState& want = one.run.state;
    const SequenceRecord& got = image.record(of.slot);
    EXPECT_EQ(got.pos, want.pos);
    EXPECT_EQ(got.generated, want.generated);
    EXPECT_EQ(got.stop_reason, want.stop_reason);
    EXPECT_EQ(got.kept_row, first + want.kept_row);
    EXPECT_EQ(got.token, one.run.read<uint32_t>(one.token, 1)[0]);
    const auto same = [&](TensorView ours, TensorView its, size_t size) {
      EXPECT_EQ(part(run.read<uint32_t>(ours, kDraftTables.sequences * size), of.slot, size),
                one.run.read<uint32_t>(its, size));
    };
    same(counts, one.counts, kDraftVocab);
    same(recent, one.recent, kPenaltyRing);
    same(more, one.more, kStateWords);
    const size_t rows = of.rows.size();
    const Words all_counts = run.read<uint32_t>(row_counts, kMostOfStep * kDraftVocab),
                its_counts = one.run.read<uint32_t>(one.row_counts, kMostOfSlot * kDraftVocab);
    for (size_t i = 0; i < rows; ++i)
      EXPECT_EQ(part(all_counts, first + i, kDraftVocab), part(its_counts, i, kDraftVocab)) << i;
    Words entries = one.run.read<uint32_t>(one.ring, kTokenRing);
    return {entries.begin() + ring_index, entries.begin() + ring_index + kMostOfSlot};
  }
};

TEST(AdvanceDrafts, EverySlotEndsAStepAsItWouldAlone) {
  DraftsRun drafts;
  SequenceRecord open{.ctx_len = 1000, .max_generated = 1000}, limited = open, stopping = open, full = open;
  open.pos = 90;
  limited.max_generated = 9;
  stopping.stop_token_count = 1;
  stopping.stop_tokens[0] = 29;
  full.pos = 50;
  full.ctx_len = 62;
  drafts.begin(0, open);
  drafts.begin(1, limited);
  drafts.begin(3, stopping);
  drafts.begin(4, full);
  drafts.image.state().ring_index = 2 * kStepRing - 6;
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    std::vector<SlotRows> all;
    for (const uint32_t slot : {4u, 0u, 3u, 1u}) {
      if (drafts.image.record(slot).stop_reason != kRunning || (slot == 0 && i % 5 == 4)) continue;
      SlotRows of{.slot = slot, .rows = {static_cast<uint32_t>(random() % 20)}, .choices = {}};
      const size_t rows = 1 + random() % kMostOfSlot;
      for (size_t row = 0; row < rows; ++row) {
        of.choices.push_back(slot == 3 && i == 6 && row == 1 ? 29 : static_cast<uint32_t>(random() % 20));
        const bool is_right = random() % 4 != 0;
        if (row + 1 < rows) of.rows.push_back(is_right ? of.choices[row] : 25);
      }
      all.push_back(of);
    }
    drafts.step(all);
  }
  EXPECT_EQ(drafts.image.record(0).stop_reason, kRunning);
  EXPECT_EQ(drafts.image.record(1).stop_reason, kTokenLimit);
  EXPECT_EQ(drafts.image.record(4).stop_reason, kContextFull);
}

TEST(AdvanceDrafts, RefusesMoreRowsThanAStepHas) {
  KernelRun run;
  TablesImage image(kDraftTables);
  const TensorView state = run.inout(image.bytes);
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, AdvanceDrafts{.choices = state,
                                      .text = state,
                                      .ring = state,
                                      .counts = state,
                                      .recent = state,
                                      .vocab_size = kDraftVocab,
                                      .rows = kMaxSequences + 1});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "advance_drafts is of 65 rows; allowed is 2 to 64.");
}

}  // namespace
}  // namespace doppler::kernels::testing
