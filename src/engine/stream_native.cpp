// Streams of many sequences for the public API: a request's way to the scheduler's thread, and its tokens' way to text.
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/guide_native.h"
#include "engine/stream_impl.h"

namespace doppler {
namespace {

constexpr double kLongestDeadline = 1e9;  // seconds, 31 years: what a clock can add to its time

}  // namespace

Stream::Impl::Impl(std::shared_ptr<Model::Impl> owner, std::vector<uint32_t> tokens, GenerateOptions chosen,
                   engine::Request asked, Reading how)
    : model(std::move(owner)),
      request(std::move(asked)),
      reading(std::move(how)),
      answer(model->loaded->text.tokenizer, engine::answer_config(*model->loaded), std::move(tokens),
             std::move(chosen), reading.show_special) {}

Stream::Impl::~Impl() {
  if (line && !line_ended) cancel_line(line);
}

Result<std::unique_ptr<Stream::Impl>> Stream::Impl::begin(std::shared_ptr<Model::Impl> model,
                                                          std::vector<uint32_t> tokens,
                                                          GenerateOptions options, engine::Request request,
                                                          Reading reading,
                                                          std::shared_ptr<engine::StreamLine> parent) {
  const size_t prompt_len = tokens.size();
  auto made = std::make_unique<Impl>(std::move(model), std::move(tokens), std::move(options),
                                     std::move(request), std::move(reading));
  made->request.guide = nullptr;  // a fork begins a grammar of its own
  const Grammar& grammar = made->answer.options().grammar;
  if (grammar.kind != GrammarKind::kNone) {
    DP_TRY(made->request.guide, made->model->guides->begin(grammar));
  }
  if (made->answer.sequence().size() != prompt_len) parent = nullptr;  // it slid, and does not begin so
  DP_CHECK(made->submit(std::move(parent)));
  return made;
}

Result<void> Stream::Impl::submit(std::shared_ptr<engine::StreamLine> parent) {
  reloads = model->reloads;
  DP_TRY(engine::Request asked, answer.next_request(request));
  DP_CHECK(model->choose_adapters(answer.options(), asked));
  std::shared_ptr<engine::StreamLine> begun;
  if (reading.on_news) {
    begun = model->dispatcher->submit_later(std::move(asked), std::move(parent), reading.on_news);
  } else {
    DP_TRY(begun, model->dispatcher->submit(std::move(asked), std::move(parent)));
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
  if (is_of_lost_device()) return;
  reading.on_news ? model->dispatcher->cancel_later(of) : model->dispatcher->cancel(of);
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

Result<std::optional<std::string>> Stream::Impl::next(const std::atomic<bool>* cancelled) {
  if (answer.ended()) return std::optional<std::string>();
  if (is_of_lost_device()) return fail(ErrorKind::kDevice, "The GPU device was lost.");
  const std::shared_ptr<engine::StreamLine> of = line_now();
  DP_TRY(std::string text, accept(of, model->dispatcher->wait(of, cancelled)));
  return std::optional<std::string>(std::move(text));
}

Result<StreamPiece> Stream::Impl::try_next() {
  if (answer.ended()) return StreamPiece{.text = {}, .accepted = true, .ended = true};
  const std::shared_ptr<engine::StreamLine> of = line_now();
  const engine::Arrived arrived = of->take(answer.options().batch);
  DP_TRY(std::string text, accept(of, arrived));
  return StreamPiece{.text = std::move(text),
                     .accepted = arrived.accepted,
                     .ended = answer.ended(),
                     .has_more = arrived.has_more && !answer.ended()};
}

Result<std::string> Stream::Impl::accept(const std::shared_ptr<engine::StreamLine>& of,
                                         const engine::Arrived& arrived) {
  line_ended = arrived.ended;
  const bool moves = arrived.error && model->dispatcher->moves(*of);
  engine::Arrived news = arrived;
  if (moves) {
    news.error.reset();
    news.ended = false;
  }
  DP_TRY(engine::StreamAnswer::Taken taken, answer.take(news));
  if (moves && !answer.ended()) DP_CHECK(move_on(*arrived.error));
  if (taken.slid) DP_CHECK(submit(nullptr));
  if (answer.ended() && !line_ended) {
    cancel_line(of);
    line_ended = true;
  }
  return std::move(taken.text);
}

Result<void> Stream::Impl::move_on(const Error& loss) {
  log(LogLevel::kWarning, "%s The answer goes on on another device.", loss.sentence().c_str());
  request.deadline.reset();  // it has begun
  answer.begin_anew();
  return submit(nullptr);
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

// Words that no other request's keys have: prefixes are shared among equal ones.
std::vector<uint32_t> extras_of_its_own() {
  static std::atomic<uint64_t> next{1};
  const uint64_t number = next++;
  return {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32)};
}

Result<Model::Impl::Prompt> prompt_of(Model::Impl& model, const Request& request) {
  Model::Impl::Prompt prompt;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&request.prompt)) {
    DP_TRY(std::vector<uint32_t> tokens, Model::Impl::checked_ids(*ids));
    return model.image_prompt(std::move(tokens), request.images);
  }
  const auto* text = std::get_if<std::string>(&request.prompt);
  if (!text) return model.chat_prompt(std::get<std::vector<Message>>(request.prompt));
  DP_TRY(const tokenizer::Tokenizer* tokenizer, model.tokenizer());
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer->encode(*text, {.add_special = request.options.add_special, .parse_special = true}));
  prompt.tokens.assign(ids.begin(), ids.end());
  return prompt;
}

}  // namespace

Result<Stream> Scheduler::submit(Request request) {
  if (!(request.deadline_seconds >= 0 && request.deadline_seconds <= kLongestDeadline)) {
    return fail(ErrorKind::kInvalidInput, "The deadline is %g seconds; allowed is 0 (none) to %g.",
                request.deadline_seconds, kLongestDeadline);
  }
  DP_TRY(Model::Impl::Prompt prompt, prompt_of(*impl_->model, request));
  engine::Request asked{.tokens = {}, .settings = {}, .client = request.client, .priority = request.priority};
  asked.images = std::move(prompt.images);
  if (!request.cache_prompt) asked.extras = extras_of_its_own();
  if (request.deadline_seconds > 0) {
    asked.deadline = engine::Clock::now() + std::chrono::duration_cast<engine::Clock::duration>(
                                                std::chrono::duration<double>(request.deadline_seconds));
  }
  DP_TRY(std::unique_ptr<Stream::Impl> stream,
         Stream::Impl::begin(impl_->model, std::move(prompt.tokens), std::move(request.options),
                             std::move(asked),
                             {.show_special = request.show_special, .on_news = std::move(request.on_news)}));
  return Stream(std::move(stream));
}

Result<Stream> Scheduler::fork(const Stream& parent, const GenerateOptions& options) {
  Stream::Impl& of = *parent.impl_;
  engine::Request request = of.request;
  request.deadline.reset();  // of the parent's beginning
  DP_TRY(std::unique_ptr<Stream::Impl> stream,
         Stream::Impl::begin(impl_->model, of.answer.sequence(), options, std::move(request), of.reading,
                             of.line_now()));
  return Stream(std::move(stream));
}

SchedulerLoad Scheduler::load() const { return impl_->model->dispatcher->load(); }

Result<Scheduler> Model::scheduler() {
  DP_CHECK(impl_->check_generates());
  impl_->driver->start_thread();
  return Scheduler(std::make_shared<Scheduler::Impl>(impl_));
}

}  // namespace doppler
