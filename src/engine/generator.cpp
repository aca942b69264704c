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

struct Bound {
  const char* name;
  double value, least, most;
};

Result<void> check_options(const GenerateOptions& o, uint32_t max_batch) {
  const SamplingOptions& s = o.sampling;
  const Bound bounds[] = {
      {"temperature", s.temperature, 0, 100},
      {"top-p", s.top_p, 0, 1},
      {"min-p", s.min_p, 0, 1},
      {"repeat-penalty", s.repeat_penalty, 0.01, 100},
      {"presence-penalty", s.presence_penalty, -100, 100},
      {"frequency-penalty", s.frequency_penalty, -100, 100},
      {"batch", static_cast<double>(o.batch), 1, static_cast<double>(max_batch)},
      {"readback-interval", static_cast<double>(o.readback_interval), 1,
       static_cast<double>(max_batch / std::max(1u, o.batch))},
  };
  for (const Bound& bound : bounds) {
    if (!(bound.value >= bound.least && bound.value <= bound.most)) {
      return fail(ErrorKind::kInvalidInput, "Option %s is %g; allowed is %g to %g.", bound.name, bound.value,
                  bound.least, bound.most);
    }
  }
  return {};
}

Result<void> check_biases(const SamplingOptions& options, uint32_t vocab_size) {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || static_cast<uint32_t>(token) >= vocab_size) {
      return fail(ErrorKind::kInvalidInput,
                  "The logit bias names token %d, outside the vocabulary; allowed is 0 to %u.", token,
                  vocab_size - 1);
    }
    if (std::isnan(bias)) {
      return fail(ErrorKind::kInvalidInput, "The logit bias of token %d is not a number.", token);
    }
  }
  return {};
}

// What remains of a full context that slides: the newer half, and at least the token to go on from.
ptrdiff_t kept_by_slide(uint32_t ctx_len) { return std::max<ptrdiff_t>(1, ctx_len / 2); }

model::GenerationSettings settings_of(const GenerateOptions& o, const GeneratorConfig& config,
                                      uint32_t max_tokens, uint64_t seed) {
  const SamplingOptions& s = o.sampling;
  model::GenerationSettings out;
  // Penalties and biases change the choice even without randomness, so only the plain case takes the greedy
  // plan.
  const bool plain =
      s.repeat_penalty == 1.0f && s.presence_penalty == 0 && s.frequency_penalty == 0 && s.logit_bias.empty();
  out.greedy = s.top_k == 1 ? plain : s.temperature == 0 && plain;
  out.sampling = {.temperature = s.temperature == 0 ? 1.0f : s.temperature,
                  .top_p = s.top_p,
                  .min_p = s.min_p,
                  .top_k = s.temperature == 0 ? 1 : s.top_k,
                  .repeat_penalty = s.repeat_penalty,
                  .presence_penalty = s.presence_penalty,
                  .frequency_penalty = s.frequency_penalty,
                  .bias_count = 0};
  for (const auto& [token, bias] : s.logit_bias)
    out.logit_bias.emplace_back(static_cast<uint32_t>(token), bias);
  out.seed = seed;
  out.max_tokens = max_tokens;
  if (o.stop_on_device) out.stop_tokens = config.stop_tokens;
  out.ignore_stop = o.ignore_eos;
  return out;
}

}  // namespace

Generator::Generator(model::StepRunner& runner, const tokenizer::Tokenizer* tokenizer, GeneratorConfig config,
                     std::vector<uint32_t>& cached_tokens, const std::atomic<bool>& cancelled)
    : runner_(runner),
      tokenizer_(tokenizer),
      config_(std::move(config)),
      cached_tokens_(cached_tokens),
      cancelled_(cancelled) {}

Result<void> Generator::start(std::vector<uint32_t> prompt, GenerateOptions options) {
  started_ = Clock::now();
  options_ = std::move(options);
  if (options_.batch == 0) options_.batch = config_.batch;
  DP_CHECK(check_options(options_, runner_.max_batch()));
  DP_CHECK(check_biases(options_.sampling, config_.vocab_size));
  if (prompt.empty())
    return fail(ErrorKind::kInvalidInput, "The prompt is empty; at least one token is needed.");
  for (const uint32_t token : prompt) {
    if (token >= config_.vocab_size) {
      return fail(ErrorKind::kInvalidInput, "Token %u is outside the vocabulary; allowed is 0 to %u.", token,
                  config_.vocab_size - 1);
    }
  }
  sequence_ = std::move(prompt);
  result_.timings.prompt_tokens = static_cast<uint32_t>(sequence_.size());
  limit_ = options_.max_tokens == 0 ? kMaxTokens : options_.max_tokens;
  stops_ = StopStrings(options_.stop);
  if (tokenizer_)
    decoder_.emplace(*tokenizer_, tokenizer::DecodeOptions{.skip_special = true}, /*at_start=*/false);
  if (sequence_.size() >= runner_.ctx_len()) {
    if (options_.when_full == WhenFull::kStop) {
      return fail(ErrorKind::kInvalidInput,
                  "The prompt has %zu tokens, but the context holds %u and needs room for an answer; raise "
                  "--ctx or let it slide.",
                  sequence_.size(), runner_.ctx_len());
    }
    sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(runner_.ctx_len()));
  }
  auto queued = queue_prompt(limit_);
  if (!queued) cached_tokens_.clear();  // what the cache holds now is not known
  return queued;
}

// Feeds what the cache lacks of sequence_, samples the first token and queues the first decode steps.
Result<void> Generator::queue_prompt(size_t max_tokens_left) {
  const auto [a, b] = std::ranges::mismatch(cached_tokens_, sequence_);
  // The last token is always evaluated: its logits are needed.
  const size_t kept = std::min<size_t>(static_cast<size_t>(a - cached_tokens_.begin()), sequence_.size() - 1);
  cached_tokens_.resize(kept);
  segment_limit_ = static_cast<uint32_t>(max_tokens_left);
  const uint64_t seed =
      options_.sampling.seed + segments_ * 0x9E3779B97F4A7C15ull;  // golden ratio: another stream
  DP_CHECK(
      runner_.begin(settings_of(options_, config_, segment_limit_, seed), std::span(sequence_).first(kept)));
  if (segments_ == 0) result_.timings.evaluated_tokens = static_cast<uint32_t>(sequence_.size() - kept);
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
  if (ended_) co_return Piece();
  const model::Ticket ticket = in_flight_.front();
  in_flight_.pop_front();
  DP_CO_TRY(const std::vector<uint32_t> tokens, co_await runner_.tokens(ticket));
  last_token_at_ = Clock::now();
  if (result_.tokens.empty()) {
    first_token_at_ = last_token_at_;
    result_.timings.ttft_seconds = seconds(started_, first_token_at_);
  }
  std::string text = accept(tokens);
  if (!ended_ && cancelled_.load(std::memory_order_relaxed)) end(StopReason::kCancelled);
  if (!ended_ && caller_stopped_) end(StopReason::kCancelled);
  if (!ended_ && !exhausted_) DP_CO_CHECK(queue_decode(kAhead));
  if (!ended_ && (exhausted_ || in_flight_.empty())) {
    DP_CO_CHECK(co_await drain());
    DP_CO_TRY(const bool slid, slide());
    if (!slid) end(StopReason::kContextFull);
  }
  if (ended_) {
    DP_CO_CHECK(co_await drain());
    if (decoder_ && !stops_.found()) text += stops_.push(decoder_->flush());
    text += stops_.flush();
  }
  result_.text += text;
  co_return Piece(std::move(text));
}

// Takes the tokens of one submit; ends at a stop.
std::string Generator::accept(std::span<const uint32_t> tokens) {
  std::string text;
  for (const uint32_t token : tokens) {
    if (token ==
        kernels::kNoToken) {  // the GPU stopped without a stop token or limit seen here: the context is full
      exhausted_ = true;
      return text;
    }
    // Every sampled token but the newest has been fed back into the cache.
    if (seen_ > 0) cached_tokens_.push_back(sequence_.back());
    ++seen_;
    sequence_.push_back(token);
    result_.tokens.push_back(static_cast<int32_t>(token));
    result_.timings.generated_tokens = static_cast<uint32_t>(result_.tokens.size());
    if (result_.tokens.size() > 1) result_.timings.decode_seconds = seconds(first_token_at_, last_token_at_);
    const bool is_stop = std::ranges::find(config_.stop_tokens, token) != config_.stop_tokens.end();
    if (is_stop && !options_.ignore_eos) {
      end(StopReason::kEndOfText);
      return text;
    }
    if (decoder_) text += stops_.push(decoder_->feed(static_cast<int32_t>(token)));
    if (stops_.found()) {
      end(StopReason::kStopString);
      return text;
    }
    if (result_.tokens.size() >= limit_) {
      end(StopReason::kTokenLimit);
      return text;
    }
  }
  return text;
}

void Generator::end(StopReason reason) {
  ended_ = true;
  result_.stop = reason;
}

// The context is full: with WhenFull::kSlide, drops the older half and evaluates the rest again.
Result<bool> Generator::slide() {
  if (options_.when_full != WhenFull::kSlide || result_.tokens.size() >= limit_) return false;
  ++segments_;
  sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(runner_.ctx_len()));
  DP_CHECK(queue_prompt(limit_ - result_.tokens.size()));
  return true;
}

// Submits past the end are read, so that their ring slots are free for the next generation.
Task<Result<void>> Generator::drain() {
  while (!in_flight_.empty()) {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    DP_CO_TRY([[maybe_unused]] const std::vector<uint32_t> unused, co_await runner_.tokens(ticket));
  }
  co_return Result<void>();
}

}  // namespace doppler::engine
