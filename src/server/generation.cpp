#include "server/generation.h"

#include <algorithm>
#include <ctime>
#include <random>

#include "openai/completion_body.h"
#include "openai/generate_fields.h"
#include "server/service.h"
#include "server/start_chat.h"

namespace doppler::server {

using openai::AnswerEvent;

namespace {

uint64_t random_seed() {
  thread_local std::mt19937_64 random{std::random_device()()};
  return random();
}

}  // namespace

Generation::Generation(std::shared_ptr<Exchange> exchange, openai::ServedRequest request,
                       std::unique_ptr<openai::AnswerWriter> writer, ModelHost& host, ErrorBody error_body)
    : exchange_(std::move(exchange)),
      request_(std::move(request)),
      writer_(std::move(writer)),
      use_(std::make_unique<ModelHost::Use>(host)),
      error_body_(std::move(error_body)) {}

// Returns a call that makes the model's thread look for news. It may be called after this generation has gone.
std::function<void()> Generation::news() {
  return [weak = weak_from_this(), worker = use_->host().worker(),
          is_posted = std::make_shared<std::atomic<bool>>()] {
    if (is_posted->exchange(true)) return;
    worker->post([weak, is_posted] {
      *is_posted = false;
      if (const auto self = weak.lock()) self->pull();
    });
  };
}

void Generation::begin(ReadyModel* model, const Error* error) {
  if (exchange_->is_gone()) return;
  use_->host().keep(shared_from_this());
  if (error) return fail_with(*error);
  head_ = {.id = exchange_->id().substr(exchange_->id().find('_') + 1),
           .model = request_.adapter.empty() ? use_->host().source().name : request_.adapter,
           .created = std::time(nullptr)};
  token_text_ = token_text_of(model->model);
  auto submitted = submit(*model);
  // The log's entry if the client leaves.
  exchange_->tell(
      {.model = head_.model, .finish = "abort", .prompt_tokens = static_cast<uint32_t>(head_.prompt_tokens)});
  if (!submitted) return fail_with(submitted.error());
  live_ = choices_.size();
  exchange_->on_gone([weak = weak_from_this(), worker = use_->host().worker()] {
    worker->post([weak] {
      if (const auto self = weak.lock()) self->abort();
    });
  });
  pull();
}

// The scheduler refuses an impossible request before it accepts it. So the refusal can have its own status, since no
// byte was sent before.
bool Generation::are_accepted() {
  for (Choice& choice : choices_) {
    if (choice.is_accepted) continue;
    auto piece = choice.stream->try_next();
    if (!piece) {
      fail_with(piece.error());
      return false;
    }
    if (!piece->accepted) return false;
    choice.is_accepted = true;
    choice.first = std::move(*piece);
  }
  return true;
}

void Generation::begin_answer() {
  has_begun_ = true;
  if (request_.is_streamed) {
    exchange_->on_drained(news());
    exchange_->begin(200, writer_->content_type(),
                     {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
    exchange_->write(writer_->begin(head_, static_cast<uint32_t>(choices_.size())));
  }
  for (uint32_t i = 0; i < choices_.size(); ++i) {
    if (request_.echoes) emit(i, {{AnswerEvent::Kind::kText, echoes_[i / request_.choices]}});
  }
}

// A model that was unloaded in between needs its adapters again.
Result<void> Generation::bring_adapters(ReadyModel& model) {
  if (request_.adapter_files.empty()) return {};
  const std::vector<AdapterInfo> known = model.model.adapters();
  for (const AdapterFile& file : request_.adapter_files) {
    if (std::ranges::find(known, file.name, &AdapterInfo::name) != known.end()) continue;
    DP_CHECK(model.model.load_adapter(file.name, file.path));
  }
  return {};
}

Result<void> Generation::submit(ReadyModel& model) {
  if (!model.scheduler) {
    return fail(ErrorKind::kUnsupported, "The model %s gives %s of texts and writes none.",
                model.name.c_str(), model.model.info().gives_scores ? "scores" : "embeddings");
  }
  begun_at_ = std::chrono::steady_clock::now();
  DP_CHECK(bring_adapters(model));
  if (request_.seed != openai::ServedRequest::Seed::kGiven) request_.options.sampling.seed = random_seed();
  const std::string& client = request_.client.empty() ? exchange_->peer() : request_.client;
  const bool is_chat = request_.endpoint == openai::Endpoint::kChatCompletions;
  batch::ChatStart chat;
  if (is_chat) {
    DP_TRY(chat, model.start(request_.chat, request_.options.grammar));
    request_.options.grammar = chat.prompt.grammar;
  }
  DP_CHECK(openai::settle_min_tokens(request_.says_min_tokens, &request_.options));
  Request request{.options = request_.options,
                  .client = std::hash<std::string>()(client),
                  .priority = request_.priority,
                  .cache_prompt = request_.caches_prompt,
                  .on_news = news()};
  if (is_chat) {
    const openai::ChatPrompt& prompt = chat.prompt;
    request.show_special = prompt.shows_special;
    request.images = std::move(chat.images);
    DP_CHECK(submit_prompt(model, std::move(chat.tokens), std::move(request)));
    for (Choice& choice : choices_) choice.parser = openai::OutputParser(prompt.parser);
    answers_.resize(choices_.size());
    if (prompt.forced.empty()) return {};
    for (uint32_t i = 0; i < choices_.size(); ++i) {
      // Told once the stream has begun: this is called before.
      choices_[i].forced = choices_[i].parser.push(prompt.forced);
    }
    return {};
  }
  for (const openai::ServedRequest::Prompt& prompt : request_.prompts) {
    std::vector<int32_t> ids;
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      DP_TRY(ids, model.model.tokenize(*text, request_.options.add_special, /*parse_special=*/true));
      echoes_.push_back(*text);
    } else {
      ids = std::get<std::vector<int32_t>>(prompt);
      if (request_.echoes) {
        DP_TRY(std::string echo, model.model.detokenize(ids));
        echoes_.push_back(std::move(echo));
      }
    }
    DP_CHECK(submit_prompt(model, std::move(ids), request));
  }
  answers_.resize(choices_.size());
  return {};
}

// The other choices fork from the first before its text is read, so that all begin after the prompt.
Result<void> Generation::submit_prompt(ReadyModel& model, std::vector<int32_t> ids, Request request) {
  head_.prompt_tokens += ids.size();
  const uint32_t ctx_len = model.model.info().ctx_len;
  if (ids.size() >= ctx_len && request_.options.when_full == WhenFull::kStop) {
    error_code_ = kContextLengthExceeded;
    return forward(overflow_error(*exchange_, {.prompt_tokens = ids.size(), .ctx_len = ctx_len}));
  }
  const size_t first = choices_.size();
  for (uint32_t i = 0; i < request_.choices; ++i) {
    if (i == 0) {
      request.prompt = std::move(ids);
      DP_TRY(Stream stream, model.scheduler->submit(request));
      choices_.push_back({.stream = std::move(stream)});
    } else {
      GenerateOptions options = request_.options;
      options.sampling.seed += i;
      DP_TRY(Stream stream, model.scheduler->fork(*choices_[first].stream, options));
      choices_.push_back({.stream = std::move(stream)});
    }
  }
  return {};
}

void Generation::pull() {
  if (has_ended_) return;
  if (!has_begun_) {
    if (!are_accepted()) return;
    begin_answer();
  }
  for (uint32_t i = 0; i < choices_.size(); ++i) {
    while (!has_ended_ && choices_[i].stream && pull_choice(i)) {
    }
  }
  if (live_ == 0 && !has_ended_) finish();
}

// Returns whether more text is there.
bool Generation::pull_choice(uint32_t i) {
  Choice& choice = choices_[i];
  // The rest waits in the stream until the client has read what it got.
  if (request_.is_streamed && exchange_->is_congested()) return false;
  emit(i, std::exchange(choice.forced, {}));
  auto piece = choice.first ? Result<StreamPiece>(*std::exchange(choice.first, std::nullopt))
                            : choice.stream->try_next();
  if (!piece) {
    fail_with(piece.error());
    return false;
  }
  const auto& so_far = choice.stream->so_far();
  const uint32_t evaluated = std::exchange(answers_[i].timings, so_far.timings).evaluated_tokens;
  if (evaluated != so_far.timings.evaluated_tokens) tell_progress(i);
  if (request_.options.logprobs) openai::tell_tokens(so_far, token_text_, &answers_[i].tokens);
  emit(i, choice.parser.push(piece->text));
  if (!piece->ended && !choice.parser.is_closed()) return piece->has_more;
  emit(i, choice.parser.finish());
  if (piece->ended) answers_[i].stop = so_far.stop;
  finish_choice(i);
  return false;
}

void Generation::emit(uint32_t choice, std::vector<AnswerEvent> events) {
  for (const AnswerEvent& event : events) {
    answers_[choice].add(event);
    if (request_.is_streamed) exchange_->write(writer_->event(choice, event, answers_[choice]));
  }
}

// Only the first of a prompt's choices evaluates the prompt.
void Generation::tell_progress(uint32_t choice) {
  if (!request_.is_streamed || !request_.told.progress || choice % request_.choices != 0) return;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begun_at_;
  const openai::ChoiceAnswer& answer = answers_[choice];
  exchange_->write(writer_->progress(choice, answer, since.count() - answer.timings.queued_seconds));
}

// The stream has ended, or the answer has without it.
void Generation::finish_choice(uint32_t index) {
  choices_[index].stream.reset();
  --live_;
  if (request_.is_streamed) exchange_->write(writer_->end_choice(index, answers_[index]));
}

void Generation::finish() {
  for (uint32_t i = 0; i < choices_.size(); ++i) {
    const Timings& t = answers_[i].timings;
    usage_.generated_tokens += t.generated_tokens;
    usage_.forced_tokens += t.forced_tokens;
    usage_.preemptions += t.preemptions;
    usage_.drafted_tokens += t.drafted_tokens;
    usage_.accepted_tokens += t.accepted_tokens;
    usage_.decode_seconds = std::max(usage_.decode_seconds, t.interval_seconds());
    usage_.total_seconds = std::max(usage_.total_seconds, t.ttft_seconds + t.decode_seconds);
    // The choices of a prompt share its evaluation.
    if (i % request_.choices == 0) usage_.cached_tokens += t.cached_tokens;
  }
  const Timings& first = answers_.front().timings;
  usage_.prompt_tokens = head_.prompt_tokens;
  usage_.queued_seconds = first.queued_seconds;
  usage_.ttft_seconds = first.ttft_seconds;
  writer_->keep(head_, answers_, usage_);
  // The log has it when the client has its answer.
  const auto self = shared_from_this();
  const bool is_length = std::string_view(openai::finish_reason(answers_.front().stop)) == "length";
  end(is_length ? "length" : "stop");
  if (request_.is_streamed) {
    exchange_->write(writer_->end(answers_, usage_));
    exchange_->end();
  } else {
    exchange_->reply(200, to_text(writer_->whole(head_, answers_, usage_)));
  }
}

void Generation::fail_with(const Error& error) {
  if (has_ended_) return;
  const auto self = shared_from_this();
  end("error");
  if (exchange_->has_begun()) {
    exchange_->write(writer_->error(error));
    exchange_->end();
  } else {
    exchange_->reply(openai::error_status(error), error_body_(error, error_code_));
  }
}

// The client left, or asked for an end.
void Generation::abort() {
  if (exchange_->is_gone()) return end("abort");
  fail_with(Error(ErrorKind::kInvalidInput, "The request was cancelled."));
}

// Streams that still run are cancelled; the place among the requests is free.
void Generation::end(const char* finish) {
  if (std::exchange(has_ended_, true)) return;
  exchange_->tell({.model = use_->host().source().name,
                   .finish = finish,
                   .prompt_tokens = static_cast<uint32_t>(head_.prompt_tokens),
                   .cached_tokens = static_cast<uint32_t>(usage_.cached_tokens),
                   .generated_tokens = static_cast<uint32_t>(usage_.generated_tokens),
                   .forced_tokens = static_cast<uint32_t>(usage_.forced_tokens),
                   .preemptions = static_cast<uint32_t>(usage_.preemptions),
                   .drafted_tokens = static_cast<uint32_t>(usage_.drafted_tokens),
                   .accepted_tokens = static_cast<uint32_t>(usage_.accepted_tokens),
                   .drafter = answers_.empty() ? "" : answers_.front().timings.drafter,
                   .queued_seconds = usage_.queued_seconds,
                   .ttft_seconds = usage_.ttft_seconds,
                   .decode_seconds = usage_.decode_seconds});
  for (Choice& choice : choices_) choice.stream.reset();
  ModelHost& host = use_->host();
  const auto self = shared_from_this();
  host.drop(self);
}

}  // namespace doppler::server
