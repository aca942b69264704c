#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "engine/answer.h"
#include "kernels/common/step_state.h"

namespace doppler::engine {
namespace {

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Scheduler::Scheduler(model::SequenceRunner& runner, SchedulerConfig config)
    : runner_(runner),
      config_(std::move(config)),
      blocks_(runner, config_.secret, config_.host_cache_bytes),
      windows_(runner, config_.secret),
      states_(runner),
      waiting_(config_.aging, config_.quantum) {
  for (uint32_t slot = runner.max_sequences(); slot-- > 0;) free_slots_.push_back(slot);
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(model::SequenceRunner& runner, SchedulerConfig config) {
  const std::pair<const char*, uint64_t> at_least_one[] = {
      {"vocab-size", config.vocab_size},     {"tickets-ahead", config.tickets_ahead},
      {"decode-steps", config.decode_steps}, {"quantum", config.quantum},
      {"max-waiting", config.max_waiting},   {"aging", config.aging.count() > 0},
  };
  for (const auto& [name, value] : at_least_one) {
    if (value == 0)
      return fail(ErrorKind::kInvalidInput, "The scheduler's %s is 0; at least 1 is needed.", name);
  }
  if (config.prefill_share == 0) config.prefill_share = runner.prompt_share();
  if (runner.max_rows() <= runner.max_sequences()) {
    return fail(ErrorKind::kInvalidInput,
                "A step has %u rows; %u sequences that decode and a row of a prompt need %u.",
                runner.max_rows(), runner.max_sequences(), runner.max_sequences() + 1);
  }
  const uint32_t least = model::least_window_blocks(runner);
  if (runner.window_block_count() < least) {
    return fail(ErrorKind::kInternal, "%u blocks of layers with a window are too few; %u are needed.",
                runner.window_block_count(), least);
  }
  return std::unique_ptr<Scheduler>(new Scheduler(runner, std::move(config)));
}

void Scheduler::cancel(Stream& stream) {
  const auto found = sequences_.find(stream.id());
  if (found != sequences_.end() && !stream.ended()) end(*found->second, StopReason::kCancelled);
}

Task<Result<bool>> Scheduler::turn() {
  if (broken_) co_return forward(*broken_);
  Task<Result<bool>> task = advance();
  Result<bool> result = co_await std::move(task);
  if (!result) fail_all(result.error());
  co_return result;
}

Task<Result<bool>> Scheduler::advance() {
  DP_CO_CHECK(blocks_.settle());
  expire();
  const size_t ahead = std::min(config_.tickets_ahead, runner_.max_tickets());
  while (in_flight_.size() < ahead) {
    DP_CO_TRY(const bool queued, queue_step());
    if (!queued) break;
  }
  if (in_flight_.empty()) {
    if (waiting_.empty()) co_return false;
    co_return fail(ErrorKind::kInternal, "%zu requests wait, but none can begin and nothing runs.",
                   waiting_.size());
  }
  const InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  DP_CO_TRY(const std::vector<uint32_t> tokens, co_await runner_.tokens(oldest.ticket));
  std::vector<kernels::LogProbEntry> logprobs;
  if (oldest.ticket.has_logprobs) {
    DP_CO_TRY(logprobs, co_await runner_.logprobs(oldest.ticket));
  }
  note_pace(oldest);
  hand_out(oldest, tokens, logprobs);
  co_return true;
}

// A ticket begins when the one before it is done.
void Scheduler::note_pace(const InFlight& collected) {
  const Clock::time_point now = config_.now();
  if (collected.is_decode && collected.ticket.count > 0)
    step_time_ = (now - std::max(collected.queued_at, collected_at_)) / collected.ticket.count;
  collected_at_ = now;
}

// Of a ticket.
uint32_t Scheduler::most_steps(const std::vector<Sequence*>& decoding) const {
  const uint32_t usual = step_time_ > config_.single_steps ? 1 : config_.decode_steps;
  uint32_t most = runner_.max_steps();
  for (const Sequence* s : decoding)
    most = std::min(most, s->request.ticket_steps == 0 ? usual : s->request.ticket_steps);
  return most;
}

// The next step: the decoding slots, and pieces of prompts where there are any. false: nothing can be queued now.
Result<bool> Scheduler::queue_step() {
  std::vector<Sequence*> decoding;
  std::ranges::copy_if(running_, std::back_inserter(decoding), &Sequence::may_decode);
  const auto decode_rows = static_cast<uint32_t>(decoding.size());
  const uint32_t rows_left = runner_.max_rows() - decode_rows;
  const auto in_prefill = [](const Sequence* s) { return s->phase == Phase::kPrefill; };
  const auto evaluating = static_cast<size_t>(std::ranges::count_if(running_, in_prefill));
  const uint32_t budget = prompt_budget({.share = config_.prefill_share,
                                         .rows_left = rows_left,
                                         .decoding = decoding.size(),
                                         .prompts = evaluating + waiting_.size()});
  DP_CHECK(admit(budget));
  std::erase_if(decoding, [](const Sequence* s) { return !s->may_decode(); });  // it may have preempted one
  uint32_t steps = 1;
  if (!decoding.empty()) {
    // While a guided sequence waits for its last token, a step of the others is queued, so that the device does not.
    const bool single = std::ranges::any_of(running_, &Sequence::guided);
    if (!single && std::ranges::none_of(running_, in_prefill)) {
      StepLimits limits{.most = most_steps(decoding), .least_left = ~0u, .others_wait = !waiting_.empty()};
      for (const Sequence* s : decoding) limits.least_left = std::min(limits.least_left, s->limit - s->asked);
      steps = decode_steps(limits);
    }
    DP_CHECK(grow(decoding, steps));
  }
  std::vector<Sequence*> prompts;  // after grow(), which may have preempted one
  std::ranges::copy_if(running_, std::back_inserter(prompts), in_prefill);
  if (!prompts.empty()) {
    DP_CHECK(queue_mixed(decoding, prompts, budget));
  } else if (!decoding.empty()) {
    DP_CHECK(queue_decode(decoding, steps));
  } else {
    return false;
  }
  return true;
}

Result<void> Scheduler::queue_mixed(const std::vector<Sequence*>& decoding,
                                    const std::vector<Sequence*>& prompts, uint32_t budget) {
  std::vector<PromptNeed> needs;
  for (const Sequence* s : prompts)
    needs.push_back({.client = s->request.client, .rows = s->piece_end() - s->fed});
  std::vector<uint32_t> rows = split_rows(needs, budget, runner_.max_pieces());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = rows_of_piece(*prompts[i], rows[i]);

  InFlight out;
  std::vector<uint32_t> slots;
  for (Sequence* s : decoding) {
    slots.push_back(s->slot);
    out.members.push_back({.sequence = s, .chooses = true});
    if (s->guided()) DP_CHECK(runner_.mask(s->slot, s->mask));
  }
  std::vector<model::Piece> pieces;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (rows[i] == 0) continue;
    Sequence* s = prompts[i];
    const bool last = s->fed + rows[i] == s->feed_to;
    if (last && s->guided()) DP_CHECK(runner_.mask(s->slot, s->mask));
    DP_CHECK(windows_.grow(s->slot, s->windows, s->fed + rows[i]));
    pieces.push_back({.slot = s->slot,
                      .pos = s->fed,
                      .tokens = std::span(s->tokens()).subspan(s->fed, rows[i]),
                      .sample = last});
    out.members.push_back({.sequence = s, .chooses = last, .fed_to = s->fed + rows[i]});
  }
  DP_TRY(out.ticket, runner_.step(slots, pieces));
  for (Sequence* s : decoding) {
    ++s->asked;
    windows_.pass(s->windows, s->positions(0));
  }
  for (const model::Piece& piece : pieces) {
    Sequence* s = *std::ranges::find(prompts, piece.slot, &Sequence::slot);
    s->fed += static_cast<uint32_t>(piece.tokens.size());
    if (piece.sample) {
      s->phase = Phase::kDecode;
      ++s->asked;
    }
    publish(*s);  // whoever reads these blocks is queued behind this step
    DP_CHECK(keep_states(*s));
    windows_.pass(s->windows, s->fed);
  }
  for (const InFlight::Member& member : out.members) ++member.sequence->in_flight;
  in_flight_.push_back(std::move(out));
  return {};
}

Result<void> Scheduler::queue_decode(const std::vector<Sequence*>& decoding, uint32_t steps) {
  InFlight out;
  std::vector<uint32_t> slots;
  for (Sequence* s : decoding) {
    slots.push_back(s->slot);
    out.members.push_back({.sequence = s, .chooses = true});
    if (s->guided()) DP_CHECK(runner_.mask(s->slot, s->mask));
  }
  out.is_decode = true;
  out.queued_at = config_.now();
  DP_TRY(out.ticket, runner_.decode(slots, steps));
  for (Sequence* s : decoding) {
    s->asked += out.ticket.count;
    windows_.pass(s->windows, s->positions(0));
    ++s->in_flight;
  }
  in_flight_.push_back(std::move(out));
  return {};
}

void Scheduler::hand_out(const InFlight& in_flight, std::span<const uint32_t> tokens,
                         std::span<const kernels::LogProbEntry> logprobs) {
  for (const auto& [sequence, chooses, fed_to] : in_flight.members) {
    sequence->stream->note_fed(std::min(fed_to, sequence->prompt_len));
    const bool has_logprobs = sequence->request.settings.sampling.logprobs != 0;
    for (uint32_t step = 0; chooses && step < in_flight.ticket.count; ++step) {
      const size_t at = size_t{step} * runner_.max_sequences() + sequence->slot;
      if (has_logprobs && sequence->phase != Phase::kEnded)
        sequence->stream->logprobs_.push_back(logprobs[at]);
      accept(*sequence, tokens[at]);
    }
    publish(*sequence);
  }
  for (const auto& [sequence, chooses, fed_to] : in_flight.members) {
    if (--sequence->in_flight == 0 && sequence->leaving()) release(*sequence);
  }
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
  const Clock::time_point now = config_.now();
  if (sequence.seen() == 1) {
    sequence.first_token_at = now;
    stream.timings_.ttft_seconds = seconds(sequence.submitted_at, now);
  }
  stream.timings_.generated_tokens = sequence.seen();
  stream.timings_.decode_seconds = seconds(sequence.first_token_at, now);
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

void Scheduler::end(Sequence& sequence, StopReason reason) {
  sequence.stream->reason_ = reason;
  leave(sequence);
}

void Scheduler::end(Sequence& sequence, Error error) {
  sequence.stream->error_ = std::move(error);
  leave(sequence);
}

void Scheduler::leave(Sequence& sequence) {
  if (sequence.phase == Phase::kWaiting) {
    waiting_.remove(sequence);
    waiting_.refund(sequence);
    sequences_.erase(sequence.serial);
    return;
  }
  sequence.phase = Phase::kEnded;
  if (sequence.in_flight == 0) release(sequence);
}

void Scheduler::fail_all(const Error& error) {
  broken_ = error;
  for (const auto& [serial, sequence] : sequences_) {
    if (!sequence->stream->ended()) sequence->stream->error_ = error;
  }
  in_flight_.clear();
  running_.clear();
  waiting_ = WaitingQueue(config_.aging, config_.quantum);
  sequences_.clear();
}

Result<void> Scheduler::check() const {
  std::vector<uint32_t> held(blocks_.pool().block_count(), 0), seen(windows_.pool().block_count(), 0);
  std::vector<uint32_t> slots = free_slots_;
  for (const Sequence* s : running_) {
    slots.push_back(s->slot);
    for (const uint32_t block : s->blocks) ++held[block];
    for (const uint32_t block : s->windows.blocks) ++seen[block];
  }
  std::ranges::sort(slots);
  if (slots.size() != runner_.max_sequences() || std::ranges::adjacent_find(slots) != slots.end())
    return fail(ErrorKind::kInternal, "%zu slots are free or held, of %u.", slots.size(),
                runner_.max_sequences());
  for (const auto& [pool, tables] : {std::pair{&blocks_.pool(), &held}, {&windows_.pool(), &seen}}) {
    for (uint32_t block = 0; block < tables->size(); ++block) {
      if ((*tables)[block] != pool->references(block)) {
        return fail(ErrorKind::kInternal, "Block %u is in %u tables and has %u references.", block,
                    (*tables)[block], pool->references(block));
      }
    }
    DP_CHECK(pool->check());
  }
  return {};
}

}  // namespace doppler::engine
