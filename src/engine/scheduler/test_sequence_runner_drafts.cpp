// The scripted runner's steps that evaluate drafts. Wrong drafts are written too, as on the GPU.
#include <gtest/gtest.h>

#include "engine/scheduler/test_sequence_runner.h"
#include "kernels/step/draft_text.h"

namespace doppler::engine::testing {

Result<model::Ticket> TestSequenceRunner::decode_drafts(std::span<const uint32_t> decoding,
                                                        model::DecodeSteps asked) {
  EXPECT_EQ(asked.steps, 1u);
  EXPECT_EQ(asked.given.size(), decoding.size());
  EXPECT_LE(asked.rows, kernels::kMostDraftRows);
  while (asked.rows > 1 && gives_fewer_steps && gives_fewer_steps()) --asked.rows;
  Call call{.decoding = {decoding.begin(), decoding.end()}, .steps = 1};
  std::vector<uint32_t> result(size_t{asked.rows} * shape_.sequences, kernels::kNoToken);
  uint32_t all = 0;
  model::DraftNeed need = draft_need_of(slots_[decoding[0]].settings);
  for (const uint32_t slot : decoding) need = together(need, draft_need_of(slots_[slot].settings));
  EXPECT_EQ(need, asked_need_) << "the rows that were asked for are of other slots";
  for (size_t i = 0; i < decoding.size(); ++i) {
    const uint32_t slot = decoding[i];
    EXPECT_EQ(slots_[slot].outstanding, 0u) << "slot " << slot << " drafts before its tokens are known";
    EXPECT_FALSE(slots_[slot].stopped) << "slot " << slot << " has stopped";
    model::SlotDrafts given = asked.given[i];
    given.tokens = given.tokens.first(std::min<size_t>(given.tokens.size(), asked.rows - 1));
    if (!given.masks.empty()) given.masks = given.masks.first(given.tokens.size() + 1);
    const std::vector<uint32_t> entries = draft_entries(slot, asked.rows, given);
    for (uint32_t row = 0; row < asked.rows; ++row)
      result[size_t{row} * shape_.sequences + slot] = entries[row];
    call.drafts.push_back(static_cast<uint32_t>(given.tokens.size()));
    all += 1 + call.drafts.back();
  }
  EXPECT_LE(all, draft_kinds.back());
  calls.push_back(std::move(call));
  auto ticket = issue({decoding.begin(), decoding.end()}, std::move(result), asked.rows);
  if (ticket) ticket->rows = asked.rows;
  return ticket;
}

std::vector<uint32_t> TestSequenceRunner::draft_entries(uint32_t slot, uint32_t rows,
                                                        const model::SlotDrafts& given) {
  Slot& s = slots_[slot];
  std::vector<uint32_t> tokens = {s.token};
  tokens.insert(tokens.end(), given.tokens.begin(), given.tokens.end());
  EXPECT_LE(tokens.size(), rows);
  EXPECT_EQ(given.masks.size(), s.settings.masked ? tokens.size() : 0);
  std::vector<uint64_t> prefixes;
  for (uint32_t i = 0; i < tokens.size(); ++i) prefixes.push_back(write(slot, s.pos + i, tokens[i]));
  std::vector<uint32_t> entries;
  bool counts = true;
  for (uint32_t i = 0; i < rows; ++i) {
    const bool has_row = i < tokens.size();
    if (i > 0) counts = counts && has_row && tokens[i] == s.token;
    if (s.stopped || !counts) {
      entries.push_back(s.stopped ? kernels::kNoToken : has_row ? kernels::kRejected : kernels::kNoDraft);
      continue;
    }
    if (s.settings.masked) s.mask = given.masks[i];
    ++s.pos;
    entries.push_back(choose(slot, prefixes[i]));
  }
  return entries;
}

}  // namespace doppler::engine::testing
