#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "kernels/common/step_state.h"

namespace doppler::engine {
namespace {

// Behind a piece of a prompt few are queued: its end, and the first token, are not to wait until more is recorded.
constexpr size_t kAheadOfPieces = 2;

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
  // One sequence decodes or evaluates its prompt.
  if (runner.max_sequences() > 1 && runner.max_rows() <= runner.max_sequences()) {
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

void Scheduler::hold(std::vector<uint32_t> tokens) {
  held_extras_ = extras_of_first(tokens);
  held_ = std::move(tokens);
}

const std::vector<uint32_t>& Scheduler::held() const {
  static const std::vector<uint32_t> kNothing;
  return held_extras_ == extras_of_first(held_) ? held_ : kNothing;
}

Task<Result<bool>> Scheduler::advance() {
  DP_CO_CHECK(blocks_.settle());
  if (preparing_.valid() && preparing_.done()) settle_plans(preparing_.take());
  expire();
  while (in_flight_.size() < tickets_ahead()) {
    auto proposing = propose_drafts();
    DP_CO_CHECK(co_await std::move(proposing));
    DP_CO_TRY(const bool queued, queue_step());
    if (!queued) break;
  }
  if (in_flight_.empty()) {
    if (preparing_.valid()) {
      const Result<void> made = co_await std::move(preparing_);
      settle_plans(made);
      co_return true;
    }
    if (waiting_.empty()) co_return false;
    co_return fail(ErrorKind::kInternal, "%zu requests wait, but none can begin and nothing runs.",
                   waiting_.size());
  }
  const InFlight oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  auto read = co_await runner_.tokens(oldest.ticket);
  if (!read && runner_.goes_on_without_lost()) {
    auto beginning = begin_lost_again();
    DP_CO_CHECK(co_await std::move(beginning));
    co_return true;
  }
  DP_CO_TRY(const std::vector<uint32_t> tokens, std::move(read));
  std::vector<kernels::LogProbEntry> logprobs;
  if (oldest.ticket.has_logprobs) {
    DP_CO_TRY(logprobs, co_await runner_.logprobs(oldest.ticket));
  }
  note_pace(oldest);
  hand_out(oldest, tokens, logprobs);
  co_return true;
}

// Measures the time of a step. A ticket begins when the one before it is done.
void Scheduler::note_pace(const InFlight& collected) {
  const Clock::time_point now = config_.now();
  const uint32_t steps = collected.ticket.count / collected.ticket.rows;
  if (collected.is_decode && steps > 0) {
    step_time_ = (now - std::max(collected.queued_at, collected_at_)) / steps;
    if (runner_.max_sequences() > 1) {
      const std::chrono::duration<double> seconds = step_time_ * steps;
      together_costs_.note(collected.rows, steps, seconds.count());
    }
  }
  collected_at_ = now;
}

// The most steps that the next ticket may have.
uint32_t Scheduler::most_steps(const std::vector<Sequence*>& decoding) const {
  const uint32_t usual = step_time_ > config_.single_steps ? 1 : config_.decode_steps;
  uint32_t most = runner_.max_steps();
  for (const Sequence* s : decoding) most = std::min(most, s->request.batch == 0 ? usual : s->request.batch);
  return most;
}

// Queues the next step: the decoding slots, and pieces of prompts if there are any. false: no step can be queued now.
Result<bool> Scheduler::queue_step() {
  if (awaits_drafts()) return false;
  std::vector<Sequence*> decoding;
  std::ranges::copy_if(running_, std::back_inserter(decoding),
                       [&](const Sequence* s) { return may_decode(s); });
  const auto decode_rows = static_cast<uint32_t>(decoding.size());
  const uint32_t rows_left = runner_.max_rows() - decode_rows;
  const auto in_prefill = [](const Sequence* s) { return s->phase == Phase::kPrefill; };
  const auto evaluating = static_cast<size_t>(std::ranges::count_if(running_, in_prefill));
  const uint32_t budget = prompt_budget({.share = config_.prefill_share,
                                         .rows_left = rows_left,
                                         .decoding = decoding.size(),
                                         .prompts = evaluating + waiting_.size()});
  DP_CHECK(admit(budget));
  std::erase_if(decoding, [&](const Sequence* s) { return !may_decode(s); });  // it may have preempted one
  model::DecodeSteps steps;
  if (!decoding.empty()) {
    steps = choose_steps(decoding);
    bool drafts = false;
    if (runner_.max_sequences() > 1) {
      DP_TRY(drafts, choose_together(decoding, steps));
    }
    if (drafts && !in_flight_.empty()) return false;  // the host knows the tokens first
    const uint32_t wanted = steps.steps * steps.submits * steps.rows;
    uint32_t all = wanted;
    DP_CHECK(grow(decoding, all));
    if (all < wanted) steps = {.steps = all};
    // Blocks are short, and growth may have left some out. Plans for the others may have fewer rows.
    if (drafts && all < wanted) steps = {};
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

// The number of tickets that are queued while the host waits for the oldest.
size_t Scheduler::tickets_ahead() const {
  const size_t more = runner_.steps_at_once() - 1;
  const size_t most = std::min<size_t>(config_.tickets_ahead + more, runner_.max_tickets());
  const auto has_piece = [](const InFlight& each) {
    return std::ranges::any_of(each.members, [](const InFlight::Member& member) { return member.rows != 0; });
  };
  if (std::ranges::none_of(in_flight_, has_piece)) return most;
  const auto is_slow = [](const Sequence* s) { return s->phase == Phase::kPrefill && s->piece_rows != ~0u; };
  return std::min(most, more + (std::ranges::any_of(running_, is_slow) ? size_t{1} : kAheadOfPieces));
}

model::DecodeSteps Scheduler::choose_steps(const std::vector<Sequence*>& decoding) const {
  // While a guided sequence waits for its last token, a step of the others is queued, so that the device does not.
  const auto takes_one = [](const Sequence* s) { return s->guided() || s->phase == Phase::kPrefill; };
  if (std::ranges::any_of(running_, takes_one)) return {};
  StepLimits limits{.most = most_steps(decoding), .least_left = ~0u, .others_wait = !waiting_.empty()};
  for (const Sequence* s : decoding) limits.least_left = std::min(limits.least_left, s->limit - s->asked);
  const Request& first = decoding.front()->request;
  const bool is_alone = runner_.max_sequences() == 1;
  const uint32_t steps = decode_steps(limits);
  if (!is_alone || limits.others_wait) return {.steps = steps};
  return {.steps = steps, .submits = std::max(1u, std::min(first.submits, limits.least_left / steps))};
}

Result<void> Scheduler::queue_mixed(const std::vector<Sequence*>& decoding,
                                    const std::vector<Sequence*>& prompts, uint32_t budget) {
  std::vector<PromptNeed> needs;
  for (const Sequence* s : prompts)
    needs.push_back({.client = s->request.client, .rows = s->piece_end() - s->fed});
  std::vector<uint32_t> rows = split_rows(needs, budget, runner_.max_pieces());
  uint32_t left = runner_.max_rows() - static_cast<uint32_t>(decoding.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = rows_of_piece(*prompts[i], rows[i]);
    if (rows[i] > left) rows[i] = 0;  // in a later step
    left -= rows[i];
  }

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
    const uint32_t end = s->fed + rows[i];
    const model::Piece piece{.slot = s->slot,
                             .pos = s->fed,
                             .tokens = std::span(s->tokens()).subspan(s->fed, rows[i]),
                             .sample = last,
                             .next = last ? std::nullopt : std::optional(s->tokens()[end])};
    if (!runner_.may_join(pieces, piece)) continue;
    if (last && s->guided()) DP_CHECK(runner_.mask(s->slot, s->mask));
    DP_CHECK(windows_.grow(s->slot, s->windows, end));
    pieces.push_back(piece);
    out.members.push_back({.sequence = s, .chooses = last, .fed_to = end, .rows = rows[i]});
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
    publish(*s);  // whoever reads these blocks is queued after this step
    DP_CHECK(keep_states(*s));
    windows_.pass(s->windows, s->fed);
  }
  for (const InFlight::Member& member : out.members) ++member.sequence->in_flight;
  in_flight_.push_back(std::move(out));
  return {};
}

Result<void> Scheduler::queue_decode(const std::vector<Sequence*>& decoding, model::DecodeSteps steps) {
  InFlight out;
  if (runner_.max_sequences() == 1) DP_CHECK(choose_drafts(*decoding[0], steps));
  std::vector<uint32_t> slots;
  std::vector<model::SlotDrafts> given;
  if (steps.rows > 1) given = given_drafts(decoding, steps.rows);
  steps.given = given;
  out.rows = static_cast<uint32_t>(decoding.size());
  for (size_t i = 0; i < decoding.size(); ++i) {
    Sequence* const s = decoding[i];
    const auto drafts = given.empty() ? 0 : static_cast<uint32_t>(given[i].tokens.size());
    slots.push_back(s->slot);
    out.members.push_back({.sequence = s, .chooses = true, .drafts = drafts});
    out.rows += drafts;
    if (s->guided() && steps.rows == 1) DP_CHECK(runner_.mask(s->slot, s->mask));
  }
  out.is_decode = true;
  out.queued_at = config_.now();
  DP_TRY(out.ticket, runner_.decode(slots, steps));
  for (Sequence* s : decoding) {
    s->asked += out.ticket.count;
    windows_.pass(s->windows, steps.rows > 1 ? s->known_positions() : s->positions(0));
    ++s->in_flight;
  }
  in_flight_.push_back(std::move(out));
  return {};
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
  held_.clear();
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
