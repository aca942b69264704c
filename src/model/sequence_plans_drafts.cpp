// Steps of several sequences that evaluate drafts. The host gives the drafts. So it knows all rows, and makes the
// tables itself. Read next: kernels/step/advance_drafts.h (the end of such a step), draft_plans.h.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "model/sequence_plans.h"

namespace doppler::model {
namespace {

constexpr uint64_t kEntryWord = sizeof(uint32_t);

std::span<const uint32_t> tokens_of(const DecodeSteps& steps, size_t i) {
  if (i >= steps.given.size()) return {};
  return steps.given[i].tokens.first(std::min<size_t>(steps.given[i].tokens.size(), steps.rows - 1));
}

}  // namespace

std::span<const uint32_t> SequencePlans::draft_rows(const DraftNeed& need) const {
  return buffers_.drafts->rows(need);
}

bool SequencePlans::may_prepare_drafts(const DraftNeed& need, uint32_t slots) const {
  return buffers_.drafts->may_add(need, slots);
}

Task<Result<void>> SequencePlans::prepare_drafts(DraftNeed need, uint32_t slots) {
  return buffers_.add_drafts(need, slots);
}

// All slots of the step run, and all their tokens were collected.
Result<OpenStep> SequencePlans::open_drafts(std::span<const uint32_t> decoding, DecodeSteps asked) {
  // A ticket is one contiguous copy out of the ring. At its end drafts are left out.
  asked.rows = std::min(asked.rows, kernels::kStepRing - ring_index_ % kernels::kStepRing);
  DraftNeed need = draft_need_of(slots_[decoding[0]].settings);
  std::vector<uint32_t> tokens, owners;
  for (size_t i = 0; i < decoding.size(); ++i) {
    const Slot& slot = slots_[decoding[i]];
    need = together(need, draft_need_of(slot.settings));
    const std::span<const uint32_t> drafts = tokens_of(asked, i);
    tokens.push_back(slot.last);
    tokens.insert(tokens.end(), drafts.begin(), drafts.end());
    owners.resize(tokens.size(), decoding[i]);
  }
  const std::span<const uint32_t> kinds = draft_rows(need);
  if (asked.rows > kernels::kMostDraftRows || kinds.empty() || tokens.size() > kinds.back()) {
    return fail(ErrorKind::kInternal,
                "A step drafts with %zu rows in all and %u of a slot; allowed are %u and %u.", tokens.size(),
                asked.rows, kinds.empty() ? 0 : kinds.back(), kernels::kMostDraftRows);
  }
  if (buffers_.table) DP_CHECK(buffers_.table->write(tokens));
  DP_CHECK(buffers_.drafts->write_rows(device_, tokens));
  DP_CHECK(write_draft_tables(owners, asked.rows));
  const DraftNeed& of_plan = buffers_.drafts->served_by(need);
  if (!of_plan.greedy) DP_CHECK(write_draft_settings(owners, of_plan));
  if (of_plan.parts.masks) DP_CHECK(write_draft_masks(decoding, asked));
  for (const uint32_t slot : decoding)
    slots_[slot].end += asked.rows;  // at most: tokens() takes off what was left out
  const auto rows = static_cast<uint32_t>(tokens.size());
  return OpenStep{.plan = &buffers_.drafts->least_plan(need, rows),
                  .rows = rows,
                  .ticket = {.slot = next_ticket_,
                             .count = asked.rows,
                             .has_logprobs = need.parts.logprobs,
                             .rows = asked.rows}};
}

// Everything before the table of blocks. The host follows the GPU's ring index.
Result<void> SequencePlans::write_draft_tables(std::span<const uint32_t> owners, uint32_t entries) {
  const auto rows = static_cast<uint32_t>(owners.size());
  std::vector<uint8_t> bytes(tables_.rows_table() + rows * 2 * kEntryWord);
  const auto put = [&](uint64_t at, const auto& value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
  };
  put(0, kernels::StepState{.rows = rows, .ring_index = ring_index_, .single_rows = rows});
  put(kernels::StepTables::sampled_state(), kernels::StepState{.rows = rows});
  put(kernels::StepTables::request(), kernels::StepRequest{.entries = entries});
  for (uint32_t row = 0, pos = 0; row < rows; ++row, ++pos) {
    const uint32_t slot = owners[row];
    if (row == 0 || owners[row - 1] != slot) pos = slots_[slot].end;
    put(kernels::StepTables::sampled() + row * 2 * kEntryWord, std::array{slot, row});
    put(tables_.rows_table() + row * 2 * kEntryWord, std::array{slot, pos});
  }
  return device_.write(*buffers_.state, 0, bytes);
}

// Rows keep their settings from step to step.
Result<void> SequencePlans::write_draft_settings(std::span<const uint32_t> owners, const DraftNeed& need) {
  row_owners_.resize(std::max(row_owners_.size(), owners.size()));
  for (uint32_t row = 0; row < owners.size(); ++row) {
    const RowOwner owner{.slot = owners[row], .begun = slots_[owners[row]].begun, .parts = need.parts};
    if (row_owners_[row] == owner) continue;
    const GenerationSettings& settings = slots_[owner.slot].settings;
    const PastTokens past = past_tokens(settings, {}, 0, vocab_size_);
    DP_CHECK(buffers_.drafts->write_settings(device_, settings, past, row, 1));
    row_owners_[row] = owner;
  }
  return {};
}

Result<void> SequencePlans::write_draft_masks(std::span<const uint32_t> decoding, const DecodeSteps& steps) {
  uint32_t row = 0;
  for (size_t i = 0; i < decoding.size(); ++i) {
    const auto rows = static_cast<uint32_t>(1 + tokens_of(steps, i).size());
    const std::vector<std::vector<uint32_t>> no_masks(rows);
    const bool is_masked = i < steps.given.size() && !steps.given[i].masks.empty();
    DP_CHECK(buffers_.drafts->write_masks(
        device_, row, is_masked ? steps.given[i].masks.first(rows) : std::span(no_masks)));
    row += rows;
  }
  return {};
}

}  // namespace doppler::model
