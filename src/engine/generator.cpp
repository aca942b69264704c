#include "engine/generator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/common/step_state.h"

namespace doppler::engine {
namespace {

using Clock = std::chrono::steady_clock;

// Tickets kept queued while one runs: enough that the device never waits, few enough that a stop wastes
// little.
constexpr size_t kAhead = 2;
constexpr uint32_t kMaxTokens = 1u << 30;
// Of a prompt: as many chunks in flight, so that the device never waits.
constexpr uint32_t kChunksAhead = 2;
// A slower device gets smaller chunks, one at a time, so that a stop is seen soon. Below the least the products of
// many rows would give way to others.
constexpr uint32_t kLeastRows = 32;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Generator::Generator(model::StepRunner& runner, const tokenizer::Tokenizer* tokenizer, GeneratorConfig config,
                     std::vector<uint32_t>& cached_tokens, const std::atomic<bool>& cancelled)
    : runner_(runner),
      tokenizer_(tokenizer),
      config_(std::move(config)),
      cached_tokens_(cached_tokens),
      cancelled_(cancelled) {}

Result<void> Generator::start(std::vector<uint32_t> prompt, GenerateOptions options,
                              std::span<const uint32_t> generated) {
  started_ = first_token_at_ = Clock::now();
  options_ = std::move(options);
  if (options_.batch == 0) options_.batch = config_.batch;
  DP_CHECK(check_options(options_, config_, runner_.max_batch()));
  if (prompt.empty())
    return fail(ErrorKind::kInvalidInput, "The prompt is empty; at least one token is needed.");
  for (const uint32_t token : prompt) {
    if (token >= config_.vocab_size) {
      return fail(ErrorKind::kInvalidInput, "Token %u is outside the vocabulary; allowed is 0 to %u.", token,
                  config_.vocab_size - 1);
    }
  }
  sequence_ = std::move(prompt);
  drafts_before_ = runner_.draft_counts();
  answer_.emplace(tokenizer_, config_.stop_tokens, options_, config_.show_special);
  answer_->result().timings.prompt_tokens = static_cast<uint32_t>(sequence_.size());
  limit_ = options_.max_tokens == 0 ? kMaxTokens : options_.max_tokens;
  for (const uint32_t token : generated) {
    sequence_.push_back(token);
    answer_->accept(token, nullptr);
  }
  if (answer_->ended()) {
    answer_->flush();
    return {};
  }
  if (sequence_.size() >= runner_.ctx_len()) {
    if (options_.when_full == WhenFull::kStop) {
      return fail(ErrorKind::kInvalidInput,
                  "The prompt has %zu tokens, but the context holds %u and needs room for an answer; raise "
                  "--ctx or let it slide.",
                  sequence_.size(), runner_.ctx_len());
    }
    sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(runner_.ctx_len()));
  }
  rows_ = config_.prompt_rows == 0 ? runner_.chunk() : std::min(config_.prompt_rows, runner_.chunk());
  chunks_ = config_.prompt_rows == 0 ? std::min(kChunksAhead, runner_.max_tickets()) : 1;
  auto queued = begin_segment();
  if (!queued) cached_tokens_.clear();  // what the cache holds now is not known
  return queued;
}

// Begins to feed the prompt, or what slid out of a full context; later, where the runner lacks the plans.
Result<void> Generator::begin_segment() {
  const auto answered = static_cast<uint32_t>(answer_->result().tokens.size());
  segment_limit_ = limit_ - answered;
  // Tokens that start() was given, or of which the cache was lost, belong to this segment: its counters go on from them.
  const uint32_t known = answered - segment_start_;
  const Segment segment{
      .max_tokens = segment_limit_ + known, .slides = segments_, .generated = answered - known};
  settings_ = settings_of(options_, config_, tokenizer_, segment);
  settings_.generated = known;
  is_waiting_ = !runner_.is_prepared(settings_);
  return is_waiting_ ? Result<void>() : queue_prompt();
}

Task<Result<void>> Generator::prepare() {
  auto preparing = runner_.prepare(settings_);
  DP_CO_CHECK(co_await std::move(preparing));
  is_waiting_ = false;
  co_return queue_prompt();
}

// Begins to feed what the cache lacks of sequence_.
Result<void> Generator::queue_prompt() {
  const auto [a, b] = std::ranges::mismatch(cached_tokens_, sequence_);
  // The last token is always evaluated: its logits are needed.
  const size_t same = std::min<size_t>(static_cast<size_t>(a - cached_tokens_.begin()), sequence_.size() - 1);
  const size_t kept = runner_.continues_from(static_cast<uint32_t>(same));
  cached_tokens_.resize(kept);
  DP_CHECK(runner_.begin(settings_, std::span(sequence_).first(kept)));
  draft_policy_ = DraftPolicy(runner_.can_draft() ? config_.drafts : DraftUse::kNever);
  if (segments_ == 0 && scheduled_ == 0) {
    answer_->result().timings.evaluated_tokens = static_cast<uint32_t>(sequence_.size() - kept);
    answer_->result().timings.cached_tokens = static_cast<uint32_t>(kept);
  }
  scheduled_ = seen_ = 0;
  exhausted_ = false;
  fed_ = kept;
  chunk_done_at_ = Clock::now();
  return feed();
}

// Queues some chunks of the prompt. The last one samples the first token, and the first decode steps follow it.
Result<void> Generator::feed() {
  while (fed_ < sequence_.size() && in_flight_.size() < chunks_) {
    const size_t count = std::min<size_t>(rows_, sequence_.size() - fed_);
    const std::optional<uint32_t> next = model::token_behind(sequence_, fed_ + count);
    DP_TRY(model::Ticket ticket, runner_.prefill(std::span(sequence_).subspan(fed_, count), next));
    const auto begin = sequence_.begin() + static_cast<ptrdiff_t>(fed_);
    cached_tokens_.insert(cached_tokens_.end(), begin, begin + static_cast<ptrdiff_t>(count));
    fed_ += count;
    if (next) {
      DP_TRY(ticket, runner_.mark());
    }
    in_flight_.push_back(ticket);
    if (next) continue;
    scheduled_ = 1;
    return queue_decode(1);  // the first token does not wait until more is recorded
  }
  return {};
}

// A chunk of the prompt is done, and more of them are to come.
Result<void> Generator::note_chunk() {
  const Clock::time_point now = Clock::now();
  const double took = seconds(std::exchange(chunk_done_at_, now), now);
  if (took > config_.chunk_seconds) {
    const auto fitting = static_cast<uint32_t>(rows_ * (config_.chunk_seconds / took));
    rows_ = std::min(rows_, std::max(kLeastRows, fitting));
    chunks_ = 1;
  }
  DP_CHECK(feed());
  return fed_ == sequence_.size() ? queue_decode(1) : Result<void>();
}

Result<void> Generator::queue_decode(size_t ahead) {
  while (in_flight_.size() < ahead + 1 && in_flight_.size() < runner_.max_tickets() &&
         scheduled_ < segment_limit_ && sequence_.size() - seen_ + scheduled_ <= runner_.ctx_len()) {
    const uint32_t left = segment_limit_ - scheduled_;
    const uint32_t steps = std::min(options_.batch, left);
    const uint32_t submits = std::min(options_.readback_interval, left / steps);
    DP_TRY(const model::Ticket ticket, runner_.decode(steps, submits, draft_policy_.choose(steps * submits)));
    scheduled_ += ticket.count;
    in_flight_.push_back(ticket);
  }
  return {};
}

Task<Result<std::optional<std::string>>> Generator::next() {
  if (answer_->ended()) co_return std::optional<std::string>();
  auto stepping = step();
  auto piece = co_await std::move(stepping);
  if (!piece) cached_tokens_.clear();  // what the cache holds now is not known
  co_return piece;
}

Task<Result<std::optional<std::string>>> Generator::step() {
  using Piece = std::optional<std::string>;
  if (is_waiting_) {
    DP_CO_CHECK(co_await prepare());
    co_return Piece(std::string());
  }
  Answer& answer = *answer_;
  const model::Ticket ticket = in_flight_.front();
  in_flight_.pop_front();
  auto read = co_await runner_.tokens(ticket);
  if (!read && runner_.goes_on_without_lost()) {
    DP_CO_CHECK(co_await drain(/*lost=*/true));
    DP_CO_CHECK(begin_segment());
    co_return Piece(std::string());
  }
  DP_CO_TRY(const std::vector<uint32_t> tokens, std::move(read));
  if (ticket.count == 0) {  // of the prompt
    if (caller_stopped_ || cancelled_.load(std::memory_order_relaxed)) {
      answer.end(StopReason::kCancelled);
      DP_CO_CHECK(co_await drain());
    } else {
      DP_CO_CHECK(note_chunk());
    }
    co_return Piece(std::string());
  }
  std::vector<kernels::LogProbEntry> logprobs;
  if (ticket.has_logprobs) {
    DP_CO_TRY(logprobs, co_await runner_.logprobs(ticket));
  }
  const Clock::time_point before = std::exchange(last_token_at_, Clock::now());
  note_drafts(ticket, static_cast<uint32_t>(tokens.size()), seconds(before, last_token_at_));
  if (answer.result().tokens.empty()) {
    first_token_at_ = last_token_at_;
    answer.result().timings.ttft_seconds = seconds(started_, first_token_at_);
  }
  DP_CO_TRY(std::string text, accept(tokens, logprobs));
  if (!answer.ended() && cancelled_.load(std::memory_order_relaxed)) answer.end(StopReason::kCancelled);
  if (!answer.ended() && caller_stopped_) answer.end(StopReason::kCancelled);
  if (!answer.ended() && !exhausted_) DP_CO_CHECK(queue_decode(kAhead));
  if (!answer.ended() && (exhausted_ || in_flight_.empty())) {
    DP_CO_CHECK(co_await drain());
    DP_CO_TRY(const bool slid, slide());
    if (!slid) answer.end(StopReason::kContextFull);
  }
  if (answer.ended()) {
    DP_CO_CHECK(co_await drain());
    text += answer.flush();
  }
  co_return Piece(std::move(text));
}

// Tokens of steps that drafted may be fewer than were scheduled.
void Generator::note_drafts(const model::Ticket& ticket, uint32_t tokens, double taken) {
  scheduled_ -= ticket.count - tokens;
  if (!answer_->result().tokens.empty()) draft_policy_.note(ticket.drafts, tokens, taken);
  const model::DraftCounts counts = runner_.draft_counts();
  Timings& timings = answer_->result().timings;
  timings.drafted_tokens = static_cast<uint32_t>(counts.drafted - drafts_before_.drafted);
  timings.accepted_tokens = static_cast<uint32_t>(counts.accepted - drafts_before_.accepted);
}

// Takes the tokens of one submit; ends at a stop.
Result<std::string> Generator::accept(std::span<const uint32_t> tokens,
                                      std::span<const kernels::LogProbEntry> logprobs) {
  Answer& answer = *answer_;
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint32_t token = tokens[i];
    if (token ==
        kernels::kNoToken) {  // the GPU stopped without a stop token or limit seen here: the context is full
      exhausted_ = true;
      return text;
    }
    if (token == kernels::kNotFinite) return broken_logits(answer.result().tokens.size());
    // Every sampled token but the newest has been fed back into the cache.
    if (seen_ > 0) cached_tokens_.push_back(sequence_.back());
    ++seen_;
    sequence_.push_back(token);
    text += answer.accept(token, logprobs.empty() ? nullptr : &logprobs[i]);
    if (answer.result().tokens.size() > 1) {
      answer.result().timings.decode_seconds = seconds(first_token_at_, last_token_at_);
    }
    if (answer.ended()) return text;
  }
  return text;
}

// The context is full: with WhenFull::kSlide, drops the older half and evaluates the rest again.
Result<bool> Generator::slide() {
  if (options_.when_full != WhenFull::kSlide || answer_->result().tokens.size() >= limit_) return false;
  ++segments_;
  segment_start_ = static_cast<uint32_t>(answer_->result().tokens.size());
  sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(runner_.ctx_len()));
  DP_CHECK(begin_segment());
  return true;
}

// Submits past the end are read, so that their ring slots are free for the next generation. `lost`: their tokens are.
Task<Result<void>> Generator::drain(bool lost) {
  while (!in_flight_.empty()) {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    const auto unused = co_await runner_.tokens(ticket);
    if (!unused && !lost) co_return forward(unused.error());
    if (ticket.has_logprobs) DP_CO_CHECK(co_await runner_.logprobs(ticket));
  }
  co_return Result<void>();
}

}  // namespace doppler::engine
