// A scripted StepRunner for tests of the generate loop: no GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "kernels/common/step_state.h"
#include "model/step_runner.h"

namespace doppler::engine {

// Continues any text with last token + 1, as a GPU would: steps past a stop give kNoToken.
class Counting final : public model::StepRunner {
 public:
  uint32_t ctx_len() const override { return ctx; }
  uint32_t chunk() const override { return most_rows; }
  uint32_t max_batch() const override { return 256; }
  uint32_t max_tickets() const override { return tickets; }
  Result<void> begin(const model::GenerationSettings& s, std::span<const uint32_t> before) override {
    settings = s;
    pos = static_cast<uint32_t>(before.size());
    generated = s.generated;
    stopped = false;
    if (lost) lost_from.reset();
    begun_at.push_back(pos);
    return {};
  }
  Result<model::Ticket> prefill(std::span<const uint32_t> tokens, std::optional<uint32_t> next) override {
    EXPECT_LE(tokens.size(), chunk());
    EXPECT_LE(pos + tokens.size(), ctx);
    last = tokens.back();
    pos += static_cast<uint32_t>(tokens.size());
    ++submits;
    chunks.push_back(static_cast<uint32_t>(tokens.size()));
    if (next) behind.push_back(*next);
    return next ? model::Ticket{} : issue(1, /*feed=*/false);
  }
  Result<model::Ticket> mark() override {
    note_ticket();
    results.emplace_back();
    return model::Ticket{.slot = static_cast<uint32_t>(results.size() - 1)};
  }
  Result<model::Ticket> decode(uint32_t steps, uint32_t times, bool drafts) override {
    submits += times;
    EXPECT_LE(steps * times, max_batch());
    return drafts ? issue_drafting(steps * times) : issue(tickets == 1 ? 1 : steps * times, true);
  }
  bool can_draft() const override { return right_drafts.has_value(); }
  model::DraftCounts draft_counts() const override { return counts; }
  Task<Result<std::vector<uint32_t>>> tokens(model::Ticket ticket) override {
    --outstanding;
    if (lost_from && ticket.slot >= *lost_from) {
      lost = true;
      co_return fail(ErrorKind::kInternal, "lost");
    }
    co_return results[ticket.slot];
  }
  bool goes_on_without_lost() override { return lost; }
  uint32_t continues_from(uint32_t count) const override {
    return stands_at ? std::min(count, *stands_at) : count;
  }
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(model::Ticket ticket) override {
    co_return std::vector<kernels::LogProbEntry>(ticket.count);
  }
  Task<Result<std::vector<uint8_t>>> save_cache(uint32_t) override { co_return std::vector<uint8_t>(); }
  Task<Result<void>> restore_cache(uint32_t, std::span<const uint8_t>) override { co_return Result<void>(); }

  uint32_t tickets = 4;  // 1: of one step, as where a step's tokens must be on the host
  uint32_t outstanding = 0, most_outstanding = 0;
  uint32_t ctx = 64, most_rows = 4, pos = 0, last = 0, generated = 0, submits = 0;
  bool stopped = false, lost = false;
  std::optional<uint32_t> lost_from;     // the first ticket whose tokens are
  uint32_t broken_at = 0;                // the token that has no finite logits
  std::vector<uint32_t> chunks;          // rows of each
  std::optional<uint32_t> stands_at;     // of recurrent states
  std::optional<uint32_t> right_drafts;  // one of so many drafts is wrong; none: it cannot draft
  model::DraftCounts counts;
  std::vector<uint32_t> behind;  // the tokens behind chunks
  model::GenerationSettings settings;
  std::vector<uint32_t> begun_at;
  std::vector<std::vector<uint32_t>> results;

 private:
  void note_ticket() { most_outstanding = std::max(most_outstanding, ++outstanding); }
  model::Ticket issue(uint32_t steps, bool feed) {
    note_ticket();
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < steps; ++i) {
      if (stopped || (feed && pos >= ctx)) {
        out.push_back(kernels::kNoToken);
        continue;
      }
      if (feed) ++pos;
      ++last;
      ++generated;
      out.push_back(last == broken_at ? kernels::kNotFinite : last);
      const bool is_stop = std::ranges::find(settings.stop_tokens, last) != settings.stop_tokens.end();
      stopped = (is_stop && !settings.ignore_stop) || generated >= settings.max_tokens;
    }
    results.push_back(std::move(out));
    return {.slot = static_cast<uint32_t>(results.size() - 1), .count = steps};
  }
  model::Ticket issue_drafting(uint32_t steps) {
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < steps; ++i) {
      ++counts.drafted;
      const bool is_right = counts.drafted % *right_drafts != 0;
      counts.accepted += is_right ? 1 : 0;
      tokens += is_right ? 2 : 1;
    }
    model::Ticket ticket = issue(tokens, true);
    ticket.count = 2 * steps;
    ticket.drafts = true;
    return ticket;
  }
};

}  // namespace doppler::engine
