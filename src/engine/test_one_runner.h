// A scripted runner of one sequence, for tests of the loop that generates: no GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/common/step_state.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

// Continues any text with last token + 1, as a GPU would: steps past a stop give kNoToken.
class Counting final : public model::SequenceRunner {
 public:
  uint32_t max_sequences() const override { return 1; }
  uint32_t ctx_len() const override { return ctx; }
  uint32_t block_len() const override { return ctx; }
  uint32_t block_count() const override { return 1; }
  uint32_t max_rows() const override { return most_rows; }
  uint32_t max_pieces() const override { return 1; }
  uint32_t max_steps() const override { return tickets == 1 ? 1 : 256; }
  uint32_t max_tickets() const override { return tickets; }
  uint32_t max_block_reads() const override { return 0; }
  bool holds_text() const override { return true; }
  Result<void> check(const model::GenerationSettings&) const override { return {}; }
  Result<void> begin(uint32_t, const model::GenerationSettings& s,
                     std::span<const uint32_t> before) override {
    EXPECT_EQ(outstanding, 0u) << "a generation begins before the tickets of the last are collected";
    settings = s;
    pos = static_cast<uint32_t>(before.size());
    generated = s.generated;
    stopped = false;
    if (lost) lost_from.reset();
    begun_at.push_back(pos);
    return {};
  }
  Result<void> mask(uint32_t, std::span<const uint32_t>) override { return {}; }
  Result<model::Ticket> step(std::span<const uint32_t> decoding,
                             std::span<const model::Piece> pieces) override {
    EXPECT_TRUE(decoding.empty());
    EXPECT_EQ(pieces.size(), 1u);
    const model::Piece& piece = pieces[0];
    EXPECT_LE(piece.tokens.size(), most_rows);
    EXPECT_EQ(piece.pos, pos);
    EXPECT_LE(pos + piece.tokens.size(), ctx);
    EXPECT_EQ(piece.next.has_value(), !piece.sample);
    last = piece.tokens.back();
    pos += static_cast<uint32_t>(piece.tokens.size());
    ++submits;
    chunks.push_back(static_cast<uint32_t>(piece.tokens.size()));
    if (piece.next) behind.push_back(*piece.next);
    return issue(piece.sample ? 1 : 0, /*feed=*/false);
  }
  Result<model::Ticket> decode(std::span<const uint32_t>, const model::DecodeSteps& asked) override {
    submits += asked.submits;
    EXPECT_LE(asked.steps * asked.submits, max_steps());
    const uint32_t steps = asked.steps * asked.submits;
    done_at += steps * cost_of_step(asked.rows);
    return asked.rows > 1 ? issue_drafting(steps, asked.rows) : issue(steps, true);
  }
  std::span<const uint32_t> draft_rows(const model::DraftNeed&) const override {
    return right_drafts ? std::span<const uint32_t>(row_counts) : std::span<const uint32_t>();
  }
  Task<Result<std::vector<uint32_t>>> tokens(model::Ticket ticket) override {
    --outstanding;
    now = finished[ticket.slot];
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

  uint32_t tickets = 4;  // 1: of one step, as where a step's tokens must be on the host
  uint32_t outstanding = 0, most_outstanding = 0;
  uint32_t ctx = 64, most_rows = 4, pos = 0, last = 0, generated = 0, submits = 0;
  bool stopped = false, lost = false;
  std::optional<uint32_t> lost_from;       // the first ticket whose tokens are
  uint32_t broken_at = 0;                  // the token that has no finite logits
  std::vector<uint32_t> chunks;            // rows of each
  std::optional<uint32_t> stands_at;       // of recurrent states
  std::optional<uint32_t> right_drafts;    // one of so many drafts is wrong; none: it cannot draft
  std::vector<uint32_t> row_counts = {2};  // of steps that draft
  uint32_t drafted = 0;
  // The seconds of a step by its rows. done_at: when all queued steps are done. now: the last collection.
  std::function<double(uint32_t rows)> cost_of_step = [](uint32_t) { return 1.0; };
  double done_at = 0, now = 0;
  std::vector<double> finished;  // each ticket
  std::vector<uint32_t> behind;  // the tokens after chunks
  model::GenerationSettings settings;
  std::vector<uint32_t> begun_at;
  std::vector<std::vector<uint32_t>> results;

 private:
  void note_ticket() { most_outstanding = std::max(most_outstanding, ++outstanding); }
  uint32_t choose(bool feed) {
    if (stopped || (feed && pos >= ctx)) return kernels::kNoToken;
    if (feed) ++pos;
    ++last;
    ++generated;
    const bool is_stop = std::ranges::find(settings.stop_tokens, last) != settings.stop_tokens.end();
    stopped = (is_stop && !settings.ignore_stop) || generated >= settings.max_tokens;
    return last == broken_at ? kernels::kNotFinite : last;
  }
  model::Ticket issue(uint32_t steps, bool feed) {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < steps; ++i) out.push_back(choose(feed));
    return note(std::move(out), 1);
  }
  model::Ticket note(std::vector<uint32_t> out, uint32_t rows) {
    note_ticket();
    results.push_back(std::move(out));
    finished.push_back(done_at);
    return {.slot = static_cast<uint32_t>(results.size() - 1),
            .count = static_cast<uint32_t>(results.back().size()),
            .rows = rows};
  }
  model::Ticket issue_drafting(uint32_t steps, uint32_t rows) {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < steps * rows; ++i) {
      const bool is_right =
          i % rows == 0 || (!kernels::is_left_out(out.back()) && ++drafted % *right_drafts != 0);
      out.push_back(is_right || stopped ? choose(/*feed=*/true) : kernels::kRejected);
    }
    return note(std::move(out), rows);
  }
};

}  // namespace doppler::engine
