#include "engine/stream_answer.h"

#include <utility>

#include "engine/tuning.h"

namespace doppler::engine {
namespace {

double seconds(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

AnswerConfig answer_config(const LoadedModel& loaded) {
  AnswerConfig config{
      .vocab_size = loaded.runner->config().vocab_size,
      .ctx_len = loaded.runner->ctx_len(),
      .stop_tokens = loaded.text.stop_tokens,
      .batch = default_batch(loaded),
      .drafting = loaded.runner->options().drafting,
      .drafters = {.next_layer = loaded.runner->has_drafts(), .model = loaded.draft != nullptr}};
  // On a CPU a step of n rows takes nearly as long as n steps. So no search pays for the plans that it needs.
  const bool searches = model::drafter_of(config.drafting, config.drafters) == model::Drafter::kLookup;
  const bool is_cpu = loaded.runner->device().caps().type == gpu::AdapterType::kCpu;
  if (searches && is_cpu && config.drafting == model::Drafting::kAuto)
    config.drafting = model::Drafting::kOff;
  return config;
}

SchedulerConfig scheduler_config(LoadedModel& loaded) {
  SchedulerConfig config{.drafter = loaded.drafter.get(),
                         .vocab_size = loaded.runner->config().vocab_size,
                         .decode_steps = default_batch(loaded)};
  if (loaded.runner->runner()->max_sequences() > 1) return config;
  // One slot: nobody else waits for its place, and its steps are short.
  constexpr uint32_t kTicketsOfOne = 3, kCpuPieceRows = 64;
  constexpr double kPieceSeconds = 0.5;
  config.tickets_ahead = kTicketsOfOne;
  config.piece_seconds = kPieceSeconds;
  if (loaded.runner->device().caps().type == gpu::AdapterType::kCpu) config.piece_rows = kCpuPieceRows;
  return config;
}

StreamAnswer::StreamAnswer(std::shared_ptr<const tokenizer::Tokenizer> tokenizer, AnswerConfig config,
                           std::vector<uint32_t> prompt, GenerateOptions options, bool show_special)
    : tokenizer_(std::move(tokenizer)),
      config_(std::move(config)),
      options_(std::move(options)),
      sequence_(std::move(prompt)),
      answer_(tokenizer_.get(), config_.stop_tokens, options_, show_special),
      started_(std::chrono::steady_clock::now()) {
  answer_.result().timings.prompt_tokens = static_cast<uint32_t>(sequence_.size());
  const uint32_t ctx_len = config_.ctx_len;
  if (options_.when_full == WhenFull::kSlide && sequence_.size() >= ctx_len) {
    sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(ctx_len));
  }
}

void StreamAnswer::go_on_behind(std::span<const uint32_t> generated) {
  for (const uint32_t token : generated) {
    if (answer_.ended()) break;
    sequence_.push_back(token);
    answer_.accept(token, nullptr);
  }
  if (answer_.ended()) answer_.flush();
}

Result<Request> StreamAnswer::next_request(Request request) const {
  GenerateOptions checked = options_;
  if (checked.batch == 0) checked.batch = config_.batch;
  DP_CHECK(check_options(checked, config_, model::kMaxBatch));
  const auto done = static_cast<uint32_t>(answer_.result().tokens.size());
  const Segment segment{.max_tokens = options_.max_tokens == 0 ? 0 : options_.max_tokens - done,
                        .slides = segments_,
                        .generated = segment_start_};
  request.settings = settings_of(options_, config_, tokenizer_.get(), segment);
  request.settings.generated = done - segment_start_;
  request.tokens = sequence_;
  request.drafts =
      DraftPolicy(options_.draft_rows != 0 ? DraftUse::kAlways : DraftUse::kWhereFaster, options_.draft_rows);
  request.batch = options_.batch;  // 0: the scheduler chooses by the time that a step takes
  request.submits = options_.readback_interval;
  return request;
}

Result<StreamAnswer::Taken> StreamAnswer::take(const Arrived& arrived) {
  Timings& timings = answer_.result().timings;
  const auto now = std::chrono::steady_clock::now();
  const bool is_first = answer_.result().tokens.empty() && !arrived.tokens.empty();
  if (is_first) {
    first_token_at_ = now;
    timings.ttft_seconds = seconds(started_, now);
  }
  if (segments_ == 0) {
    timings.cached_tokens = arrived.timings.cached_tokens;
    timings.evaluated_tokens = arrived.timings.evaluated_tokens;
    timings.queued_seconds = arrived.timings.queued_seconds;
  }
  Taken out;
  for (size_t i = 0; i < arrived.tokens.size(); ++i) {
    sequence_.push_back(arrived.tokens[i]);
    out.text += answer_.accept(arrived.tokens[i], arrived.logprobs.empty() ? nullptr : &arrived.logprobs[i]);
    if (answer_.ended()) break;
  }
  timings.forced_tokens +=
      arrived.timings.forced_tokens - std::exchange(forced_, arrived.timings.forced_tokens);
  timings.preemptions +=
      arrived.timings.preemptions - std::exchange(preemptions_, arrived.timings.preemptions);
  const model::DraftTally& drafts = arrived.timings.drafts;
  timings.drafted_tokens += static_cast<uint32_t>(drafts.drafted - drafts_.drafted);
  timings.accepted_tokens += static_cast<uint32_t>(drafts.accepted - drafts_.accepted);
  drafts_ = drafts;
  if (drafts.drafted != 0) timings.drafter = model::drafter_name(drafter_of(options_, config_));
  if (is_first) {
    timings.first_tokens = timings.generated_tokens;
  } else if (!arrived.tokens.empty()) {
    timings.decode_seconds = seconds(first_token_at_, now);
  }
  if (!answer_.ended() && arrived.error) return forward(Error(*arrived.error));
  if (!answer_.ended() && arrived.ended) {
    const StopReason reason = arrived.reason.value_or(StopReason::kCancelled);
    out.slid = reason == StopReason::kContextFull && slide();
    if (!out.slid) answer_.end(reason);
  }
  if (answer_.ended()) out.text += answer_.flush();
  return out;
}

void StreamAnswer::begin_anew() {
  forced_ = preemptions_ = 0;
  drafts_ = {};
}

// The context is full: with WhenFull::kSlide, drops the older half; the rest is evaluated again.
bool StreamAnswer::slide() {
  const size_t done = answer_.result().tokens.size();
  const bool at_limit = options_.max_tokens != 0 && done >= options_.max_tokens;
  if (options_.when_full != WhenFull::kSlide || at_limit) return false;
  ++segments_;
  segment_start_ = static_cast<uint32_t>(done);
  begin_anew();
  sequence_.erase(sequence_.begin(), sequence_.end() - kept_by_slide(config_.ctx_len));
  return true;
}

}  // namespace doppler::engine
