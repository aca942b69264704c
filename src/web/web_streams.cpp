#include "web/web_streams.h"

#include <algorithm>
#include <utility>

namespace doppler::web {

Result<std::unique_ptr<WebStreams>> WebStreams::create(engine::LoadedModel& loaded) {
  std::unique_ptr<WebStreams> made(new WebStreams(loaded));
  DP_TRY(made->scheduler_, engine::Scheduler::create(made->runner_, engine::scheduler_config(loaded)));
  return made;
}

// Runs the steps that are still queued after an end that the host saw.
Task<Result<void>> WebStreams::settle() {
  while (true) {
    auto turning = scheduler_->turn();
    DP_CO_TRY(const bool more, co_await std::move(turning));
    if (!more) co_return Result<void>();
  }
}

Task<Result<std::vector<uint8_t>>> WebStreams::save(std::span<const uint32_t> tokens) {
  if (!runner_.holds_text()) co_return std::vector<uint8_t>();
  auto settling = settle();
  DP_CO_CHECK(co_await std::move(settling));
  const auto [a, b] = std::ranges::mismatch(scheduler_->held(), tokens);
  auto saving = runner_.save(runner_.continues_from(static_cast<uint32_t>(b - tokens.begin())));
  co_return co_await std::move(saving);
}

Task<Result<void>> WebStreams::restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes) {
  if (!runner_.holds_text()) co_return Result<void>();  // its text is evaluated when it goes on
  auto settling = settle();
  DP_CO_CHECK(co_await std::move(settling));
  scheduler_->hold({});
  auto restoring = runner_.restore(static_cast<uint32_t>(tokens.size()), bytes);
  DP_CO_CHECK(co_await std::move(restoring));
  scheduler_->hold({tokens.begin(), tokens.end()});
  co_return Result<void>();
}

Task<Result<Generation>> WebStreams::generate(Asked asked, PieceCallback on_piece) {
  auto line = std::make_shared<Line>(Line{
      .call = asked.call,
      .answer = engine::StreamAnswer(loaded_.text.tokenizer, engine::answer_config(loaded_),
                                     std::move(asked.prompt), std::move(asked.options), asked.show_special),
      .guide = std::move(asked.guide),
      .images = std::move(asked.images),
      .adapters = std::move(asked.adapters),
      .on_piece = std::move(on_piece),
      .stream = nullptr,
      .ended = {}});
  line->answer.go_on_behind(asked.generated);
  if (!asked.generated.empty()) line->on_piece({}, line->answer.result().text);
  if (!line->answer.ended()) {
    DP_CO_CHECK(submit(*line));
    lines_.push_back(line);
    if (!running_.valid() || running_.done()) {
      running_ = run();
      running_.start();
    }
    DP_CO_CHECK(co_await line->ended);
  }
  co_return line->answer.result();
}

void WebStreams::cancel(uint32_t call) {
  for (const auto& line : lines_) {
    if (line->call == call) scheduler_->cancel(*line->stream);
  }
}

Result<void> WebStreams::submit(Line& line) {
  DP_TRY(engine::Request request, line.answer.next_request({.guide = line.guide, .images = line.images}));
  if (line.answer.options().adapters) {
    request.first_adapters = false;
    request.settings.adapters = line.adapters;
  }
  DP_TRY(line.stream, scheduler_->submit(std::move(request)));
  return {};
}

Task<bool> WebStreams::run() {
  while (!lines_.empty()) {
    auto turning = scheduler_->turn();
    const Result<bool> turned = co_await std::move(turning);  // an error is in every stream too
    deliver();
    if (!turned) break;
  }
  co_return true;
}

void WebStreams::deliver() {
  std::vector<std::pair<std::shared_ptr<Line>, Result<void>>> ended;
  std::erase_if(lines_, [&](const std::shared_ptr<Line>& line) {
    const Result<bool> delivered = deliver(*line);
    if (delivered && !*delivered) return false;
    ended.emplace_back(line, delivered ? Result<void>() : forward(delivered.error()));
    return true;
  });
  for (auto& [line, result] : ended) line->ended.complete(std::move(result));
}

Result<bool> WebStreams::deliver(Line& line) {
  engine::Stream& stream = *line.stream;
  const engine::Arrived arrived{.tokens = stream.take(),
                                .logprobs = stream.take_logprobs(),
                                .ended = stream.ended(),
                                .reason = stream.reason(),
                                .error = stream.error(),
                                .timings = stream.timings()};
  if (arrived.tokens.empty() && !arrived.ended) return false;
  const size_t told = line.answer.result().tokens.size();
  DP_TRY(const engine::StreamAnswer::Taken taken, line.answer.take(arrived));
  const std::span<const int32_t> fresh = std::span(line.answer.result().tokens).subspan(told);
  if (!fresh.empty() || !taken.text.empty()) line.on_piece(fresh, taken.text);
  if (taken.slid) DP_CHECK(submit(line));
  if (line.answer.ended() && !arrived.ended) scheduler_->cancel(stream);
  return line.answer.ended();
}

}  // namespace doppler::web
