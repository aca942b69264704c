// The two ends of a step of many sequences: the tables that arrange makes, word for word; and advance against the step
// kernel of one sequence, for every slot, over replays in which sequences stop one by one.
#include "kernels/step/advance.h"

#include <memory>
#include <random>

#include "kernels/step/arrange.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kVocab = 50;
constexpr StepTables kTables{.sequences = 5, .rows = 150, .blocks = 7, .block_len = 16};

struct ArrangeRun {
  KernelRun run{Policy{}, kTables.rows};
  TablesImage image{kTables};
  std::vector<uint32_t> tokens = std::vector<uint32_t>(kTables.rows);
  TensorView state_view = run.inout(image.bytes);
  TensorView tokens_view = run.inout(tokens);

  ArrangeRun() {
    EXPECT_TRUE(run.record([&](Context& ctx) {
      Context many = with_tables(ctx, image, state_view);
      return record(many, Arrange{.tokens = tokens_view});
    }));
    for (uint32_t slot = 0; slot < kTables.sequences; ++slot) {
      image.record(slot) = {.pos = 10 * slot, .token = 20 + slot, .ctx_len = 1000, .max_generated = 1000};
    }
    for (uint32_t i = 0; i < kTables.rows; ++i) tokens[i] = 1000 + i;
  }
  void request(const std::vector<uint32_t>& slots, const std::vector<PieceRequest>& pieces = {}) {
    StepRequest& request = image.request();
    request.decoding = static_cast<uint32_t>(slots.size());
    request.pieces = static_cast<uint32_t>(pieces.size());
    std::ranges::copy(slots, request.slots);
    std::ranges::copy(pieces, request.piece);
    run.overwrite(state_view, image.bytes);
    run.overwrite(tokens_view, tokens);
    run.replay();
    image.bytes = run.read<uint8_t>(state_view, image.bytes.size());
    tokens = run.read<uint32_t>(tokens_view, tokens.size());
  }
};

using Entries = std::vector<SlotEntry>;

TEST(Arrange, DecodingSlotsComeInTheRequestsOrder) {
  ArrangeRun arrange;
  arrange.request({3, 0, 4});
  EXPECT_EQ(arrange.image.rows(), (Entries{{3, 30}, {0, 0}, {4, 40}}));
  EXPECT_EQ(arrange.image.all_sampled(), (Entries{{3, 0}, {0, 1}, {4, 2}}));
  EXPECT_EQ(arrange.tokens[0], 23u);
  EXPECT_EQ(arrange.tokens[1], 20u);
  EXPECT_EQ(arrange.tokens[2], 24u);
  EXPECT_EQ(arrange.tokens[3], 1003u);
  EXPECT_EQ(arrange.image.record(3).pos, 30u);
}

TEST(Arrange, StoppedSlotsAreLeftOutOfADecodeStep) {
  ArrangeRun arrange;
  arrange.image.record(1).stop_reason = kStopToken;
  arrange.image.record(4).stop_reason = kContextFull;
  arrange.request({1, 3, 4, 2});
  EXPECT_EQ(arrange.image.rows(), (Entries{{3, 30}, {2, 20}}));
  EXPECT_EQ(arrange.image.all_sampled(), (Entries{{3, 0}, {2, 1}}));
  EXPECT_EQ(arrange.tokens[0], 23u);
  EXPECT_EQ(arrange.tokens[1], 22u);
  arrange.request({1, 4});
  EXPECT_TRUE(arrange.image.rows().empty());
  EXPECT_TRUE(arrange.image.all_sampled().empty());
}

TEST(Arrange, PiecesFollowTheDecodingSlots) {
  ArrangeRun arrange;
  arrange.image.record(2).stop_reason = kTokenLimit;
  const PieceRequest first{.slot = 0, .pos = 128, .rows = 3, .sample = 1};
  const PieceRequest second{.slot = 4, .pos = 0, .rows = 140};
  const PieceRequest third{.slot = 3, .pos = 7, .rows = 1, .sample = 1};
  arrange.request({2, 1}, {first, second, third});
  const std::vector<SlotEntry> rows = arrange.image.rows();
  ASSERT_EQ(rows.size(), 146u);
  EXPECT_EQ(rows[0], (SlotEntry{2, kNowhere}));
  EXPECT_EQ(rows[1], (SlotEntry{1, 10}));
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(rows[2 + i], (SlotEntry{0, 128 + i}));
  for (uint32_t i = 0; i < 140; ++i) EXPECT_EQ(rows[5 + i], (SlotEntry{4, i}));
  EXPECT_EQ(rows[145], (SlotEntry{3, 7}));
  EXPECT_EQ(arrange.image.all_sampled(), (Entries{{1, 1}, {0, 4}, {3, 145}}));
  EXPECT_EQ(arrange.tokens[1], 21u);
  for (uint32_t i = 2; i < 146; ++i) EXPECT_EQ(arrange.tokens[i], 1000 + i);
  EXPECT_EQ(arrange.image.record(0).pos, 131u);
  EXPECT_EQ(arrange.image.record(4).pos, 140u);
  EXPECT_EQ(arrange.image.record(3).pos, 8u);
  EXPECT_EQ(arrange.image.record(1).pos, 10u);
}

TEST(Arrange, AStepOfPiecesThatDoNotEndSamplesNothing) {
  ArrangeRun arrange;
  arrange.request({}, {{.slot = 1, .pos = 16, .rows = 150}});
  EXPECT_EQ(arrange.image.rows().size(), 150u);
  EXPECT_TRUE(arrange.image.all_sampled().empty());
}

// Steps of many, beside a plan of one sequence for each slot.
struct AdvanceRun {
  // One sequence, whose last step kernel ran over the same tokens.
  struct Alone {
    KernelRun run;
    TensorView token = run.input(std::vector<uint32_t>{0});
    TensorView ring = run.output(kTokenRing * 4);
    TensorView counts = run.inout(std::vector<uint32_t>(kVocab));
    TensorView recent = run.inout(std::vector<uint32_t>(kPenaltyRing, kNoToken));
    Alone() {
      EXPECT_TRUE(run.record([&](Context& ctx) {
        return record(
            ctx,
            Step{.token = token, .ring = ring, .counts = counts, .recent = recent, .vocab_size = kVocab});
      }));
    }
  };

  uint32_t sequences = kTables.sequences;
  KernelRun run{Policy{}, kTables.rows};
  TablesImage image{kTables};
  TensorView state_view = run.inout(image.bytes);
  TensorView token_view = run.inout(std::vector<uint32_t>(sequences));
  TensorView ring = run.output(uint64_t{kStepRing} * sequences * 4);
  TensorView counts = run.inout(std::vector<uint32_t>(sequences * kVocab));
  TensorView recent = run.inout(std::vector<uint32_t>(sequences * kPenaltyRing, kNoToken));
  TensorView tokens_view = run.inout(std::vector<uint32_t>(kTables.rows));
  std::vector<std::unique_ptr<Alone>> alone;

  AdvanceRun() {
    EXPECT_TRUE(run.record([&](Context& ctx) {
      Context many = with_tables(ctx, image, state_view);
      return record(many, Advance{.token = token_view,
                                  .ring = ring,
                                  .counts = counts,
                                  .recent = recent,
                                  .tokens = tokens_view,
                                  .vocab_size = kVocab});
    }));
    for (uint32_t slot = 0; slot < sequences; ++slot) alone.push_back(std::make_unique<Alone>());
  }

  // The slot begins: `record` for many, the same values for a run by itself. Its next row is at record.pos.
  void begin(uint32_t slot, const SequenceRecord& record) {
    image.record(slot) = record;
    StepState& state = alone[slot]->run.state;
    state = {.pos = record.pos,
             .rows = 1,
             .ctx_len = record.ctx_len,
             .generated = record.generated,
             .max_generated = record.max_generated,
             .stop_token_count = record.stop_token_count,
             .ignore_stop = record.ignore_stop};
    std::ranges::copy(record.stop_tokens, state.stop_tokens);
  }
  void set_rows(const std::vector<uint32_t>& slots) {
    for (uint32_t i = 0; i < slots.size(); ++i) {
      image.row(i) = {slots[i], image.record(slots[i]).pos};
      image.sampled(i) = {slots[i], i};
    }
    image.state().rows = image.sampled_state().rows = static_cast<uint32_t>(slots.size());
  }
  void upload() { run.overwrite(state_view, image.bytes); }

  // A step that chooses chosen[slot]. Checks the ring, the tables and each slot against its run by itself.
  void step(const std::vector<uint32_t>& chosen) {
    const std::vector<SlotEntry> before = image.all_sampled();
    const uint32_t ring_index = image.state().ring_index;
    std::vector<uint32_t> token(sequences, kPoison), entries(sequences, kNoToken);
    for (size_t i = 0; i < before.size(); ++i) entries[before[i].slot] = token[i] = chosen[before[i].slot];
    run.overwrite(token_view, token);
    run.replay();
    image.bytes = run.read<uint8_t>(state_view, image.bytes.size());

    EXPECT_EQ(image.state().ring_index, ring_index + 1);
    const auto all_entries = run.read<uint32_t>(ring, uint64_t{kStepRing} * sequences);
    const auto first = all_entries.begin() + ring_index % kStepRing * sequences;
    EXPECT_EQ(std::vector(first, first + sequences), entries);
    std::vector<SlotEntry> next_rows, next_sampled;
    std::vector<uint32_t> next_tokens;
    for (const SlotEntry& entry : before) {
      SCOPED_TRACE(entry.slot);
      Alone& one = *alone[entry.slot];
      one.run.overwrite(one.token, std::vector{chosen[entry.slot]});
      one.run.replay(1);
      expect_same(entry.slot, one, chosen[entry.slot]);
      if (one.run.state.stop_reason != kRunning) continue;
      next_sampled.push_back({entry.slot, static_cast<uint32_t>(next_rows.size())});
      next_rows.push_back({entry.slot, one.run.state.pos});
      next_tokens.push_back(chosen[entry.slot]);
    }
    EXPECT_EQ(image.rows(), next_rows);
    EXPECT_EQ(image.all_sampled(), next_sampled);
    EXPECT_EQ(run.read<uint32_t>(tokens_view, next_tokens.size()), next_tokens);
  }

  void expect_same(uint32_t slot, Alone& one, uint32_t token) {
    const SequenceRecord& record = image.record(slot);
    EXPECT_EQ(record.pos, one.run.state.pos);
    EXPECT_EQ(record.token, token);
    EXPECT_EQ(record.generated, one.run.state.generated);
    EXPECT_EQ(record.stop_reason, one.run.state.stop_reason);
    const auto all_counts = run.read<uint32_t>(counts, sequences * kVocab);
    const auto all_recent = run.read<uint32_t>(recent, sequences * kPenaltyRing);
    const auto counted = all_counts.begin() + slot * kVocab;
    const auto seen = all_recent.begin() + slot * kPenaltyRing;
    EXPECT_EQ(std::vector(counted, counted + kVocab), one.run.read<uint32_t>(one.counts, kVocab));
    EXPECT_EQ(std::vector(seen, seen + kPenaltyRing), one.run.read<uint32_t>(one.recent, kPenaltyRing));
  }
};

TEST(Advance, EverySlotEndsAStepAsItWouldAlone) {
  AdvanceRun advance;
  const SequenceRecord open{.ctx_len = 1000, .max_generated = 1000};
  SequenceRecord limited = open, full = open, stopping = open, ignoring = open;
  limited.max_generated = 3;
  full.pos = 40;
  full.ctx_len = 45;
  stopping.pos = 7;
  stopping.stop_token_count = 2;
  stopping.stop_tokens[0] = 48;
  stopping.stop_tokens[1] = 49;
  stopping.stop_tokens[2] = 1;  // past the count
  ignoring = stopping;
  ignoring.ignore_stop = 1;
  advance.begin(0, limited);
  advance.begin(1, open);
  advance.begin(2, stopping);
  advance.begin(3, full);
  advance.begin(4, ignoring);
  advance.image.state().ring_index = kStepRing - 2;
  advance.set_rows({4, 2, 0, 1, 3});
  advance.upload();
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 80; ++i) {
    SCOPED_TRACE(i);
    std::vector<uint32_t> chosen(5);
    for (uint32_t& t : chosen) t = static_cast<uint32_t>(random() % 48);
    chosen[2] = i == 8 ? 49 : chosen[2];
    chosen[4] = 49;
    advance.step(chosen);
  }
  EXPECT_EQ(advance.image.record(0).stop_reason, kTokenLimit);
  EXPECT_EQ(advance.image.record(2).stop_reason, kStopToken);
  EXPECT_EQ(advance.image.record(3).stop_reason, kContextFull);
  EXPECT_EQ(advance.image.rows(), (Entries{{4, 87}, {1, 80}}));
}

TEST(Advance, WithoutRowsTheRingMovesAlone) {
  AdvanceRun advance;
  advance.begin(1, {.pos = 5, .ctx_len = 6, .max_generated = 10});
  advance.set_rows({1});
  advance.upload();
  advance.step(std::vector<uint32_t>(5, 3));
  EXPECT_EQ(advance.image.record(1).stop_reason, kContextFull);
  const SequenceRecord stopped = advance.image.record(1);
  advance.step(std::vector<uint32_t>(5, 4));
  advance.step(std::vector<uint32_t>(5, 4));
  EXPECT_EQ(advance.image.record(1).pos, stopped.pos);
  EXPECT_EQ(advance.image.record(1).generated, 1u);
  EXPECT_EQ(advance.image.state().ring_index, 3u);
}

TEST(Advance, APieceThatEndsGoesOnBehindItsLastRow) {
  AdvanceRun advance;
  // Row 0 has stopped and row 1 decodes. Rows 2 to 4 are the end of a prompt; Arrange has moved its record past them.
  advance.begin(3, {.pos = 20, .ctx_len = 100, .max_generated = 10});
  advance.begin(0, {.pos = 129, .ctx_len = 200, .max_generated = 10});
  advance.image.row(0) = {2, kNowhere};
  advance.image.row(1) = {3, 20};
  for (uint32_t i = 0; i < 3; ++i) advance.image.row(2 + i) = {0, 127 + i};
  advance.image.record(0).pos = 130;
  advance.image.sampled(0) = {3, 1};
  advance.image.sampled(1) = {0, 4};
  advance.image.state().rows = 5;
  advance.image.sampled_state().rows = 2;
  advance.upload();
  advance.step({9, 9, 9, 8, 9});
  EXPECT_EQ(advance.image.record(0).pos, 130u);
  EXPECT_EQ(advance.image.rows(), (Entries{{3, 21}, {0, 130}}));
}

TEST(Advance, RefusesMoreSequencesThanTheTablesHold) {
  KernelRun run;
  TablesImage image({.sequences = kMaxSequences + 1, .rows = 100});
  const TensorView state = run.inout(image.bytes);
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, Arrange{.tokens = state});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(),
            "Step tables of 65 sequences and 100 rows; allowed are 1 to 64 sequences, and a row for each.");
}

}  // namespace
}  // namespace doppler::kernels::testing
