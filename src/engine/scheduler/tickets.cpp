// Handles tickets that come back: tokens go to their streams, grammars move on, pieces of prompts are timed. Read next:
// forced.cpp, drafting.cpp.
#include <algorithm>
#include <utility>

#include "engine/answer.h"
#include "engine/scheduler/scheduler.h"
#include "kernels/step/draft_text.h"

namespace doppler::engine {
namespace {

// Products of fewer rows give way to others.
constexpr uint32_t kLeastPieceRows = 32;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void Scheduler::hand_out(const InFlight& in_flight, std::span<const uint32_t> tokens,
                         std::span<const kernels::LogProbEntry> logprobs) {
  if (runner_.max_sequences() > 1 && in_flight.is_decode) note_together(in_flight, tokens);
  for (const auto& [sequence, chooses, fed_to, rows, drafts] : in_flight.members) {
    sequence->stream->note_fed(std::min(fed_to, sequence->prompt_len));
    if (rows != 0 && !chooses) note_piece(*sequence, rows);
    if (chooses && runner_.max_sequences() == 1) note_decode(*sequence, in_flight.ticket, tokens);
    const bool has_logprobs = sequence->request.settings.sampling.logprobs != 0;
    for (uint32_t step = 0; chooses && step < in_flight.ticket.count; ++step) {
      const size_t at = size_t{step} * runner_.max_sequences() + sequence->slot;
      if (kernels::is_left_out(tokens[at])) {
        --sequence->asked;
        continue;
      }
      if (has_logprobs && sequence->phase != Phase::kEnded)
        sequence->stream->logprobs_.push_back(logprobs[at]);
      accept(*sequence, tokens[at]);
    }
    if (chooses && in_flight.ticket.count != 0) guide(*sequence);
    publish(*sequence);
    if (in_flight.ticket.rows > 1) windows_.pass(sequence->windows, sequence->known_positions());
  }
  for (const InFlight::Member& member : in_flight.members) {
    Sequence* const sequence = member.sequence;
    if (--sequence->in_flight == 0 && sequence->leaving()) release(*sequence);
  }
}

// A piece of a prompt is done, and more pieces follow.
void Scheduler::note_piece(Sequence& sequence, uint32_t rows) {
  const Clock::time_point now = config_.now();
  const double took = seconds(std::exchange(sequence.piece_done_at, now), now);
  if (!(took > config_.piece_seconds)) return;
  const auto fitting = static_cast<uint32_t>(rows * (config_.piece_seconds / took));
  sequence.piece_rows = std::min(sequence.piece_rows, std::max(kLeastPieceRows, fitting));
}

// The runner lost the tokens of the oldest ticket and of all later ones. Running sequences go on after the tokens
// that are known.
Task<Result<void>> Scheduler::begin_lost_again() {
  while (!in_flight_.empty()) {
    const model::Ticket ticket = in_flight_.front().ticket;
    in_flight_.pop_front();
    [[maybe_unused]] const auto unused = co_await runner_.tokens(ticket);
    if (ticket.has_logprobs) DP_CO_CHECK(co_await runner_.logprobs(ticket));
  }
  for (Sequence* const sequence : std::vector(running_)) {
    sequence->in_flight = 0;
    sequence->drafts = sequence->request.drafts;
    held_ = known_tokens(*sequence);
    held_extras_ = all_extras(sequence->request);
    if (sequence->leaving()) {
      release(*sequence);
    } else {
      DP_CO_CHECK(begin_in_slot(*sequence, start_in_held(*sequence)));
    }
  }
  co_return Result<void>();
}

void Scheduler::accept(Sequence& sequence, uint32_t token) {
  if (sequence.phase == Phase::kEnded) return;
  if (token == kernels::kNoToken) {
    auto error = fail(ErrorKind::kInternal,
                      "The device gave no token for slot %u, whose sequence has not ended.", sequence.slot);
    end(sequence, std::move(error).error());
    return;
  }
  if (token == kernels::kNotFinite) {
    end(sequence, broken_logits(sequence.seen()).error());
    return;
  }
  take(sequence, token);
}

// Finds the tokens that a guided sequence may choose after the last one that is known.
void Scheduler::guide(Sequence& sequence) {
  if (!sequence.guided() || sequence.stream->ended()) return;
  if (auto appended = append_forced(sequence); !appended) return end(sequence, std::move(appended).error());
  if (sequence.stream->ended()) return;
  auto allowed = sequence.request.guide->allowed();
  if (!allowed) return end(sequence, std::move(allowed).error());
  sequence.mask = std::move(*allowed);
}

// A token of the answer, chosen or forced.
void Scheduler::take(Sequence& sequence, uint32_t token) {
  Stream& stream = *sequence.stream;
  stream.sequence_.push_back(token);
  stream.timings_.generated_tokens = sequence.seen();
  const model::GenerationSettings& settings = sequence.request.settings;
  const bool is_stop = std::ranges::find(settings.stop_tokens, token) != settings.stop_tokens.end();
  if (is_stop && !settings.ignore_stop) return end(sequence, StopReason::kEndOfText);
  // Also before a limit: a full context may slide, and the guide goes on.
  if (sequence.guided()) {
    auto goes_on = sequence.request.guide->accept(token);
    if (!goes_on) return end(sequence, std::move(goes_on).error());
    if (!*goes_on) return end(sequence, StopReason::kEndOfText);
  }
  if (sequence.seen() == sequence.limit) {
    end(sequence, sequence.limit_is_context ? StopReason::kContextFull : StopReason::kTokenLimit);
  }
}

}  // namespace doppler::engine
