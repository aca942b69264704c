#include "engine/generator.h"

#include <algorithm>
#include <cmath>

#include "kernels/common/step_state.h"

namespace doppler::engine {
namespace {

using Clock = std::chrono::steady_clock;

// Tickets kept queued while one runs: enough that the device never waits, few enough that a stop wastes
// little.
constexpr size_t kAhead = 2;
constexpr uint32_t kMaxTokens = 1u << 30;

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
  answer_.emplace(tokenizer_, config_.stop_tokens, options_);
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
  auto queued = queue_prompt(limit_ - generated.size());
  if (!queued) cached_tokens_.clear();  // what the cache holds now is not known
  return queued;
}

// Feeds what the cache lacks of sequence_, samples the first token and queues the first decode steps.
Result<void> Generator::queue_prompt(size_t max_tokens_left) {
  const auto [a, b] = std::ranges::mismatch(cached_tokens_, sequence_);
  // The last token is always evaluated: its logits are needed.
  const size_t same = std::min<size_t>(static_cast<size_t>(a - cached_tokens_.begin()), sequence_.size() - 1);
  const size_t kept = runner_.continues_from(static_cast<uint32_t>(same));
  cached_tokens_.resize(kept);
  segment_limit_ = static_cast<uint32_t>(max_tokens_left);
  const auto answered = static_cast<uint32_t>(answer_->result().tokens.size());
  // Tokens that start() was given belong to the first segment: its counters go on from them.
  const uint32_t known = segments_ == 0 ? answered : 0;
  const Segment segment{
      .max_tokens = segment_limit_ + known, .slides = segments_, .generated = answered - known};
  model::GenerationSettings settings = settings_of(options_, config_, tokenizer_, segment);
  settings.generated = known;
  DP_CHECK(runner_.begin(settings, std::span(sequence_).first(kept)));
  if (segments_ == 0) {
    answer_->result().timings.evaluated_tokens = static_cast<uint32_t>(sequence_.size() - kept);
    answer_->result().timings.cached_tokens = static_cast<uint32_t>(kept);
  }
  scheduled_ = seen_ = 0;
  exhausted_ = false;
  for (size_t at = kept; at < sequence_.size();) {
    const size_t count = std::min<size_t>(runner_.chunk(), sequence_.size() - at);
    const bool last = at + count == sequence_.size();
    DP_TRY(const model::Ticket ticket, runner_.prefill(std::span(sequence_).subspan(at, count), last));
    cached_tokens_.insert(cached_tokens_.end(), sequence_.begin() + static_cast<ptrdiff_t>(at),
                          sequence_.begin() + static_cast<ptrdiff_t>(at + count));
    if (last) in_flight_.push_back(ticket);
    at += count;
  }
  scheduled_ = 1;
  return queue_decode(1);  // the first token does not wait until more is recorded
}

Result<void> Generator::queue_decode(size_t ahead) {
  while (in_flight_.size() < ahead + 1 && in_flight_.size() < runner_.max_tickets() &&
         scheduled_ < segment_limit_ && sequence_.size() - seen_ + scheduled_ <= runner_.ctx_len()) {
    const uint32_t left = segment_limit_ - scheduled_;
    const uint32_t steps = std::min(options_.batch, left);
    DP_TRY(const model::Ticket ticket,
           runner_.decode(steps, std::min(options_.readback_interval, left / steps)));
    scheduled_ += ticket.count;
    in_flight_.push_back(ticket);
  }
  return {};
}

Task<Result<std::optional<std::string>>> Generator::next() {
  using Piece = std::optional<std::string>;
  Answer& answer = *answer_;
  if (answer.ended()) co_return Piece();
  const model::Ticket ticket = in_flight_.front();
  in_flight_.pop_front();
  DP_CO_TRY(const std::vector<uint32_t> tokens, co_await runner_.tokens(ticket));
  std::vector<kernels::LogProbEntry> logprobs;
  if (ticket.has_logprobs) {
    DP_CO_TRY(logprobs, co_await runner_.logprobs(ticket));
  }
  last_token_at_ = Clock::now();
  if (answer.result().tokens.empty()) {
    first_token_at_ = last_token_at_;
    answer.result().timings.ttft_seconds = seconds(started_, first_token_at_);
  }
  std::string text = accept(tokens, logprobs);
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

// Takes the tokens of one submit; ends at a stop.
std::string Generator::accept(std::span<const uint32_t> tokens,
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
  sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(runner_.ctx_len()));
  DP_CHECK(queue_prompt(limit_ - answer_->result().tokens.size()));
  return true;
}

// Submits past the end are read, so that their ring slots are free for the next generation.
Task<Result<void>> Generator::drain() {
  while (!in_flight_.empty()) {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    DP_CO_TRY([[maybe_unused]] const std::vector<uint32_t> unused, co_await runner_.tokens(ticket));
    if (ticket.has_logprobs) DP_CO_CHECK(co_await runner_.logprobs(ticket));
  }
  co_return Result<void>();
}

}  // namespace doppler::engine
