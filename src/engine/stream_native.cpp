// Streams of many sequences behind the public API: a request's way to the scheduler's thread, and its tokens' way to text.
#include <algorithm>
#include <utility>

#include "base/json.h"
#include "engine/guide_native.h"
#include "engine/model_options.h"
#include "engine/stream_impl.h"
#include "engine/tuning.h"

namespace doppler {
namespace {

constexpr double kLongestDeadline = 1e9;  // seconds, 31 years: what a clock can add to its time

double seconds(Stream::Impl::Clock::time_point from, Stream::Impl::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Stream::Impl::Impl(std::shared_ptr<Model::Impl> owner, std::vector<uint32_t> tokens, GenerateOptions chosen,
                   engine::Request asked, Reading how)
    : model(std::move(owner)),
      options(std::move(chosen)),
      request(std::move(asked)),
      reading(std::move(how)),
      sequence(std::move(tokens)),
      answer(model->loaded->text.tokenizer.get(), model->loaded->text.stop_tokens, options,
             reading.show_special),
      started(Clock::now()) {
  answer.result().timings.prompt_tokens = static_cast<uint32_t>(sequence.size());
}

Stream::Impl::~Impl() {
  if (line && !line_ended) cancel_line(line);
}

engine::GeneratorConfig Stream::Impl::config() const {
  return {.vocab_size = model->info.vocab_size,
          .stop_tokens = model->loaded->text.stop_tokens,
          .batch = engine::default_batch(*model->loaded)};
}

Result<std::unique_ptr<Stream::Impl>> Stream::Impl::begin(std::shared_ptr<Model::Impl> model,
                                                          std::vector<uint32_t> tokens,
                                                          GenerateOptions options, engine::Request request,
                                                          Reading reading,
                                                          std::shared_ptr<engine::StreamLine> parent) {
  auto made = std::make_unique<Impl>(std::move(model), std::move(tokens), std::move(options),
                                     std::move(request), std::move(reading));
  made->request.guide = nullptr;  // a fork begins a grammar of its own
  // Without guides the scheduler refuses the request.
  if (made->options.grammar.kind != GrammarKind::kNone && made->model->guides) {
    DP_TRY(made->request.guide, made->model->guides->begin(made->options.grammar));
  }
  const uint32_t ctx_len = made->model->info.ctx_len;
  if (made->options.when_full == WhenFull::kSlide && made->sequence.size() >= ctx_len) {
    made->sequence.erase(made->sequence.begin(), made->sequence.end() - engine::kept_by_slide(ctx_len));
    parent = nullptr;  // it does not begin so
  }
  DP_CHECK(made->submit(made->sequence, std::move(parent)));
  return made;
}

Result<void> Stream::Impl::submit(std::vector<uint32_t> tokens, std::shared_ptr<engine::StreamLine> parent) {
  GenerateOptions checked = options;
  if (checked.batch == 0) checked.batch = config().batch;
  DP_CHECK(engine::check_options(checked, config(), model::kMaxBatch));
  const auto done = static_cast<uint32_t>(answer.result().tokens.size());
  const engine::Segment segment{.max_tokens = options.max_tokens == 0 ? 0 : options.max_tokens - done,
                                .slides = segments,
                                .generated = done};
  request.settings = engine::settings_of(options, config(), model->loaded->text.tokenizer.get(), segment);
  engine::Request asked = request;
  asked.tokens = std::move(tokens);
  std::shared_ptr<engine::StreamLine> begun;
  if (reading.on_news) {
    begun = model->thread->submit_later(std::move(asked), std::move(parent), reading.on_news);
  } else {
    DP_TRY(begun, model->thread->submit(std::move(asked), std::move(parent)));
  }
  const std::lock_guard lock(mutex);
  line = std::move(begun);
  line_ended = false;
  return {};
}

std::shared_ptr<engine::StreamLine> Stream::Impl::line_now() {
  const std::lock_guard lock(mutex);
  return line;
}

void Stream::Impl::cancel_line(const std::shared_ptr<engine::StreamLine>& of) {
  reading.on_news ? model->thread->cancel_later(of) : model->thread->cancel(*of);
}

void Stream::Impl::cancel() {
  std::shared_ptr<engine::StreamLine> now;
  {
    const std::lock_guard lock(mutex);
    was_cancelled = true;
    now = line;
  }
  if (now) cancel_line(now);
}

// The context is full: with WhenFull::kSlide, drops the older half and evaluates the rest again.
Result<bool> Stream::Impl::slide() {
  const bool at_limit = options.max_tokens != 0 && answer.result().tokens.size() >= options.max_tokens;
  if (options.when_full != WhenFull::kSlide || at_limit) return false;
  ++segments;
  line_forced = 0;
  sequence.erase(sequence.begin(), sequence.end() - engine::kept_by_slide(model->info.ctx_len));
  DP_CHECK(submit(sequence, nullptr));
  return true;
}

Result<std::optional<std::string>> Stream::Impl::next() {
  if (answer.ended()) return std::optional<std::string>();
  const std::shared_ptr<engine::StreamLine> of = line_now();
  DP_TRY(std::string text, accept(of, of->wait()));
  return std::optional<std::string>(std::move(text));
}

Result<StreamPiece> Stream::Impl::try_next() {
  if (answer.ended()) return StreamPiece{.ended = true};
  const std::shared_ptr<engine::StreamLine> of = line_now();
  const engine::Arrived arrived = of->take();
  if (arrived.tokens.empty() && !arrived.ended) return StreamPiece{};
  DP_TRY(std::string text, accept(of, arrived));
  return StreamPiece{.text = std::move(text), .ended = answer.ended()};
}

Result<std::string> Stream::Impl::accept(const std::shared_ptr<engine::StreamLine>& of,
                                         const engine::Arrived& arrived) {
  line_ended = arrived.ended;
  Timings& timings = answer.result().timings;
  const auto now = Clock::now();
  if (answer.result().tokens.empty() && !arrived.tokens.empty()) {
    first_token_at = now;
    timings.ttft_seconds = seconds(started, now);
  }
  if (segments == 0) {
    timings.cached_tokens = arrived.timings.cached_tokens;
    timings.evaluated_tokens = timings.prompt_tokens - timings.cached_tokens;
    timings.queued_seconds = arrived.timings.queued_seconds;
  }
  std::string text;
  for (size_t i = 0; i < arrived.tokens.size(); ++i) {
    sequence.push_back(arrived.tokens[i]);
    text += answer.accept(arrived.tokens[i], arrived.logprobs.empty() ? nullptr : &arrived.logprobs[i]);
    if (answer.ended()) break;
  }
  timings.forced_tokens +=
      arrived.timings.forced_tokens - std::exchange(line_forced, arrived.timings.forced_tokens);
  if (answer.result().tokens.size() > 1) timings.decode_seconds = seconds(first_token_at, now);
  if (!answer.ended() && arrived.error) return forward(Error(*arrived.error));
  if (!answer.ended() && arrived.ended) {
    const StopReason reason = arrived.reason.value_or(StopReason::kCancelled);
    bool slid = false;
    if (reason == StopReason::kContextFull) {
      DP_TRY(slid, slide());
    }
    if (!slid) answer.end(reason);
  }
  if (answer.ended()) {
    if (!line_ended) {
      cancel_line(of);
      line_ended = true;
    }
    text += answer.flush();
  }
  return text;
}

Result<Generation> Stream::Impl::finish() {
  while (!answer.ended()) {
    DP_TRY([[maybe_unused]] const std::optional<std::string> piece, next());
  }
  return answer.result();
}

// ---- Stream

Stream::Stream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Result<std::optional<std::string>> Stream::next() { return impl_->next(); }
const Generation& Stream::so_far() const { return impl_->answer.result(); }
Result<StreamPiece> Stream::try_next() { return impl_->try_next(); }
Result<Generation> Stream::finish() { return impl_->finish(); }
void Stream::cancel() { impl_->cancel(); }

// ---- Scheduler

Scheduler::Scheduler(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

namespace {

Result<std::vector<uint32_t>> tokens_of(const Model::Impl& model, const Request& request) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&request.prompt)) {
    return Model::Impl::checked_ids(*ids);
  }
  DP_TRY(const tokenizer::Tokenizer* tokenizer, model.tokenizer());
  std::vector<int32_t> ids;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    DP_TRY(ids,
           tokenizer->encode(*text, {.add_special = request.options.add_special, .parse_special = true}));
  } else {
    const auto& messages = std::get<std::vector<Message>>(request.prompt);
    DP_TRY(const std::string rendered,
           engine::apply_chat_template(model.loaded->text, messages_json(messages),
                                       /*add_generation_prompt=*/true));
    // The template writes the special tokens itself.
    DP_TRY(ids, tokenizer->encode(rendered, {.add_special = false, .parse_special = true}));
  }
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

}  // namespace

Result<Stream> Scheduler::submit(Request request) {
  if (!(request.deadline_seconds >= 0 && request.deadline_seconds <= kLongestDeadline)) {
    return fail(ErrorKind::kInvalidInput, "The deadline is %g seconds; allowed is 0 (none) to %g.",
                request.deadline_seconds, kLongestDeadline);
  }
  DP_TRY(std::vector<uint32_t> tokens, tokens_of(*impl_->model, request));
  engine::Request asked{.tokens = {}, .settings = {}, .client = request.client, .priority = request.priority};
  if (request.deadline_seconds > 0) {
    asked.deadline = engine::Clock::now() + std::chrono::duration_cast<engine::Clock::duration>(
                                                std::chrono::duration<double>(request.deadline_seconds));
  }
  DP_TRY(std::unique_ptr<Stream::Impl> stream,
         Stream::Impl::begin(impl_->model, std::move(tokens), std::move(request.options), std::move(asked),
                             {.show_special = request.show_special, .on_news = std::move(request.on_news)}));
  return Stream(std::move(stream));
}

Result<Stream> Scheduler::fork(const Stream& parent, const GenerateOptions& options) {
  Stream::Impl& of = *parent.impl_;
  engine::Request request = of.request;
  request.deadline.reset();  // of the parent's beginning
  DP_TRY(
      std::unique_ptr<Stream::Impl> stream,
      Stream::Impl::begin(impl_->model, of.sequence, options, std::move(request), of.reading, of.line_now()));
  return Stream(std::move(stream));
}

SchedulerLoad Scheduler::load() const { return impl_->model->thread->load(); }

Result<Scheduler> Model::scheduler() {
  if (impl_->thread) return Scheduler(std::make_shared<Scheduler::Impl>(impl_));
  return fail(ErrorKind::kUnsupported,
              "The model was loaded for one sequence; a scheduler needs LoadOptions::sequences of 2 to 64.");
}

}  // namespace doppler
