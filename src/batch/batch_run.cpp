#include "batch/batch_run.h"

#include <chrono>
#include <ctime>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "openai/batch_line.h"
#include "openai/completion_body.h"
#include "openai/generate_fields.h"

namespace doppler::batch {
namespace {

using Clock = std::chrono::steady_clock;
// The interval between calls of on_tick().
constexpr auto kTick = std::chrono::milliseconds(100);

// True if the request is at fault, and not the device or this program.
bool is_of_request(const Error& error) {
  return error.kind() == ErrorKind::kInvalidInput || error.kind() == ErrorKind::kUnsupported;
}

}  // namespace

BatchRun::BatchRun(Scheduler& scheduler, openai::LineReader& input, openai::BatchOutput& output,
                   BatchSettings settings, uint64_t lines)
    : scheduler_(scheduler), input_(input), output_(output), settings_(std::move(settings)) {
  totals_.lines = lines;
}

Result<BatchTotals> BatchRun::run() {
  const auto start = Clock::now();
  working_ = settings_.in_flight;
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < settings_.in_flight; ++i) workers.emplace_back([this] { work(); });
  {
    std::unique_lock lock(mutex_);
    while (!worker_ended_.wait_for(lock, kTick, [&] { return working_ == 0; })) {
      totals_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (settings_.on_tick && !settings_.on_tick(totals_)) stop();
    }
  }
  for (std::thread& worker : workers) worker.join();
  totals_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (error_) return forward(std::move(*error_));
  DP_CHECK(output_.sync());
  return totals_;
}

void BatchRun::work() {
  while (const auto line = next_line()) answer(*line);
  const std::lock_guard lock(mutex_);
  --working_;
  worker_ended_.notify_one();
}

// The next line that can be answered and is not.
std::optional<openai::BatchLine> BatchRun::next_line() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return std::nullopt;
  auto line = read_line();
  if (line) return std::move(*line);
  stop(std::move(line).error());
  return std::nullopt;
}

// Under the mutex, so that ids are claimed in the order of the lines.
Result<std::optional<openai::BatchLine>> BatchRun::read_line() {
  while (true) {
    DP_TRY(const auto text, input_.next());
    if (!text) return std::optional<openai::BatchLine>();
    openai::BatchLine line = openai::parse_batch_line(text->text, text->number, settings_.defaults);
    if (text->is_too_long) {
      line.completion = fail(ErrorKind::kInvalidInput, "It is longer than %s.",
                             format_bytes(openai::kMaxLineBytes).c_str());
    }
    switch (output_.claim(line.number, line.custom_id)) {
      case openai::BatchOutput::Claim::kDone:
        ++totals_.before;
        continue;
      case openai::BatchOutput::Claim::kDuplicate:
        ++totals_.failed;
        DP_CHECK(output_.write(openai::error_line(
            line.number, line.custom_id, openai::kDuplicateId,
            format_text("Line %llu: An earlier line has the custom_id \"%s\" too.",
                        static_cast<unsigned long long>(line.number), printable(*line.custom_id).c_str()))));
        continue;
      case openai::BatchOutput::Claim::kNew:
        break;
    }
    if (line.completion && settings_.check) {
      if (auto checked = settings_.check(line); !checked)
        line.completion = forward(std::move(checked).error());
    }
    if (line.completion) return std::optional(std::move(line));
    ++totals_.failed;
    DP_CHECK(output_.write(openai::error_line(line, line.completion.error())));
  }
}

void BatchRun::answer(const openai::BatchLine& line) {
  ChatStart chat;
  const Result<std::vector<Generation>> choices = generate(line, chat);
  const std::lock_guard lock(mutex_);
  finish_line(line, chat.prompt, choices);
}

Result<std::vector<Generation>> BatchRun::generate(const openai::BatchLine& line, ChatStart& chat) {
  if (line.completion->endpoint == openai::Endpoint::kChatCompletions) {
    DP_TRY(chat, settings_.start_chat(line.completion->chat, line.completion->request.options.grammar));
  }
  DP_TRY(std::vector<Stream> streams, submit(*line.completion, chat));
  return read(streams);
}

// Makes a stream for each choice. The others fork from the first before its text is read, so that all begin after the
// prompt.
Result<std::vector<Stream>> BatchRun::submit(const openai::CompletionRequest& completion, ChatStart& chat) {
  std::vector<Stream> streams;
  streams.reserve(completion.choices);
  Request request = completion.request;
  request.client = settings_.client;
  if (completion.endpoint == openai::Endpoint::kChatCompletions) {
    request.prompt = std::move(chat.tokens);
    request.images = std::move(chat.images);
    request.options.grammar = chat.prompt.grammar;
    request.show_special = chat.prompt.shows_special;
  }
  DP_CHECK(openai::settle_min_tokens(completion.says_min_tokens, &request.options));
  const GenerateOptions first_options = request.options;
  DP_TRY(Stream first, scheduler_.submit(std::move(request)));
  streams.push_back(std::move(first));
  for (uint32_t choice = 1; choice < completion.choices; ++choice) {
    GenerateOptions options = first_options;
    options.sampling.seed += choice;
    DP_TRY(Stream next, scheduler_.fork(streams[0], options));
    streams.push_back(std::move(next));
  }
  return streams;
}

Result<std::vector<Generation>> BatchRun::read(std::vector<Stream>& streams) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return fail(ErrorKind::kCancelled, "The batch was interrupted.");
    for (Stream& stream : streams) streams_.insert(&stream);
  }
  Result<std::vector<Generation>> out;
  for (Stream& stream : streams) {
    Result<Generation> generation = stream.finish();
    if (!generation) {
      out = forward(std::move(generation).error());
      break;
    }
    if (generation->stop == StopReason::kCancelled) {
      out = fail(ErrorKind::kCancelled, "The batch was interrupted.");
      break;
    }
    out->push_back(std::move(*generation));
  }
  const std::lock_guard lock(mutex_);
  for (Stream& stream : streams) streams_.erase(&stream);
  return out;
}

// Under the mutex.
void BatchRun::finish_line(const openai::BatchLine& line, const openai::ChatPrompt& prompt,
                           const Result<std::vector<Generation>>& choices) {
  if (stopping_) return;  // done again by the next run
  std::string text;
  if (choices) {
    const Json body = openai::completion_body(
        {.endpoint = line.completion->endpoint,
         .id = std::to_string(line.number),
         .model = settings_.model,
         .created = std::time(nullptr),
         .choices = *choices,
         .token_text = line.completion->request.options.logprobs ? settings_.token_text : openai::TokenText(),
         .token_ids = settings_.token_ids,
         .parser = prompt.parser,
         .forced = prompt.forced});
    text = openai::answer_line(line.number, *line.custom_id, body);
    totals_.prompt_tokens += choices->front().timings.prompt_tokens;
    totals_.cached_tokens += choices->front().timings.cached_tokens;
    for (const Generation& choice : *choices) totals_.generated_tokens += choice.timings.generated_tokens;
  } else if (is_of_request(choices.error())) {
    text = openai::error_line(line, choices.error());
  } else {
    return stop(choices.error());
  }
  if (auto written = output_.write(text); !written) return stop(std::move(written).error());
  ++(choices ? totals_.answered : totals_.failed);
}

// Under the mutex: nothing new is read, and what is under way ends without a line.
void BatchRun::stop() {
  if (stopping_) return;
  stopping_ = true;
  for (Stream* stream : streams_) stream->cancel();
}

void BatchRun::stop(Error error) {
  if (!error_) error_ = std::move(error);
  stop();
}

}  // namespace doppler::batch
