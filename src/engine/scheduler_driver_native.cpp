#include "engine/scheduler_driver_native.h"

#include <algorithm>
#include <semaphore>

namespace doppler::engine {
namespace {

// The time that the device is waited for before calls are looked at again.
constexpr uint64_t kPollMicroseconds = 300;

}  // namespace

Arrived StreamLine::wait() {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return !arrived_.tokens.empty() || arrived_.ended; });
  Arrived out = arrived_;
  arrived_.tokens.clear();
  arrived_.logprobs.clear();
  return out;
}

bool StreamLine::has_news() {
  const std::lock_guard lock(mutex_);
  return !arrived_.tokens.empty() || arrived_.ended;
}

Arrived StreamLine::take() {
  const std::lock_guard lock(mutex_);
  Arrived out = arrived_;
  arrived_.tokens.clear();
  arrived_.logprobs.clear();
  return out;
}

bool StreamLine::deliver() {
  const std::vector<kernels::LogProbEntry> logprobs = stream_->take_logprobs();
  const std::vector<uint32_t> tokens = stream_->take();
  const bool ended = stream_->ended();
  const uint32_t evaluated = stream_->timings().evaluated_tokens;
  const bool is_further = std::exchange(told_evaluated_, evaluated) != evaluated;
  if (tokens.empty() && !ended && !is_further) return false;
  {
    const std::lock_guard lock(mutex_);
    arrived_.tokens.insert(arrived_.tokens.end(), tokens.begin(), tokens.end());
    arrived_.logprobs.insert(arrived_.logprobs.end(), logprobs.begin(), logprobs.end());
    arrived_.ended = ended;
    arrived_.reason = stream_->reason();
    arrived_.error = stream_->error();
    arrived_.timings = stream_->timings();
  }
  came_.notify_one();
  if (on_news_) on_news_();
  return ended;
}

void StreamLine::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    arrived_.ended = true;
    arrived_.error = std::move(error);
  }
  came_.notify_one();
  if (on_news_) on_news_();
}

Result<std::unique_ptr<SchedulerDriver>> SchedulerDriver::create(gpu::Device& device,
                                                                 model::SequenceRunner& runner,
                                                                 SchedulerConfig config) {
  DP_TRY(std::unique_ptr<engine::Scheduler> scheduler, engine::Scheduler::create(runner, std::move(config)));
  return std::unique_ptr<SchedulerDriver>(new SchedulerDriver(device, runner, std::move(scheduler)));
}

void SchedulerDriver::start_thread() {
  if (!has_thread()) thread_ = std::thread([this] { run(); });
}

uint64_t SchedulerDriver::objects() const {
  const gpu::Counters& made = device_.counters();
  return made.buffers_created + made.bind_groups_created + made.pipelines_created -
         runner_.objects_created_later();
}

SchedulerDriver::~SchedulerDriver() {
  if (!has_thread()) {
    finish_turns();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  called_.notify_one();
  thread_.join();
}

// What is queued uses the device: it is waited for.
void SchedulerDriver::finish_turns() {
  for (const auto& line : lines_) scheduler_->cancel(*line->stream_);
  while (turn()) {
  }
}

void SchedulerDriver::run() {
  bool is_busy = true;  // with what others began, perhaps
  while (true) {
    {
      std::unique_lock lock(mutex_);
      called_.wait(lock, [&] { return is_busy || stopping_ || !calls_.empty(); });
      if (stopping_ && calls_.empty()) {
        lock.unlock();
        return finish_turns();
      }
    }
    run_calls();
    is_busy = turn();
  }
}

// One turn; false: there is nothing more to do.
bool SchedulerDriver::turn() {
  Task<Result<bool>> turn = scheduler_->turn();
  turn.start();
  while (!turn.done()) {
    device_.poll(kPollMicroseconds);
    run_calls();
  }
  const Result<bool> more = turn.take();
  deliver();
  return more && *more;
}

void SchedulerDriver::deliver() {
  std::erase_if(lines_, [](const std::shared_ptr<StreamLine>& line) { return line->deliver(); });
}

void SchedulerDriver::run_calls() {
  std::deque<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (const std::function<void()>& call : calls) call();
  const bool is_cancelled = cancelled_ && cancelled_->load(std::memory_order_relaxed);
  if (is_cancelled && awaited_->stream_ && !awaited_->stream_->ended())
    scheduler_->cancel(*awaited_->stream_);
  if (!calls.empty() || is_cancelled) deliver();
}

Arrived SchedulerDriver::wait(const std::shared_ptr<StreamLine>& line, const std::atomic<bool>* cancelled) {
  if (has_thread()) return line->wait();
  awaited_ = line;
  cancelled_ = cancelled;
  run_calls();
  while (!line->has_news()) turn();
  cancelled_ = nullptr;
  awaited_ = nullptr;
  return line->take();
}

void SchedulerDriver::call(const std::function<void()>& body) {
  if (!has_thread()) {
    run_calls();
    body();
    return deliver();
  }
  std::binary_semaphore done(0);
  post([&] {
    body();
    done.release();
  });
  done.acquire();
}

void SchedulerDriver::post(std::function<void()> body) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(body));
  }
  called_.notify_one();
}

Result<std::shared_ptr<engine::Stream>> SchedulerDriver::begin(engine::Request request,
                                                               const std::shared_ptr<StreamLine>& parent) {
  if (parent && parent->stream_) return scheduler_->fork(*parent->stream_, std::move(request));
  return scheduler_->submit(std::move(request));
}

Result<std::shared_ptr<StreamLine>> SchedulerDriver::submit(engine::Request request,
                                                            std::shared_ptr<StreamLine> parent) {
  Result<std::shared_ptr<engine::Stream>> stream = nullptr;
  std::shared_ptr<StreamLine> line;
  call([&] {
    stream = begin(std::move(request), parent);
    if (stream) line = lines_.emplace_back(std::make_shared<StreamLine>(*stream, nullptr));
  });
  if (!stream) return forward(std::move(stream).error());
  return line;
}

std::shared_ptr<StreamLine> SchedulerDriver::submit_later(engine::Request request,
                                                          std::shared_ptr<StreamLine> parent,
                                                          std::function<void()> on_news) {
  auto line = std::make_shared<StreamLine>(nullptr, std::move(on_news));
  post([this, line, parent = std::move(parent), request = std::move(request)] {
    auto stream = begin(request, parent);
    if (!stream) return line->fail(std::move(stream).error());
    line->stream_ = std::move(*stream);
    lines_.push_back(line);
  });
  return line;
}

void SchedulerDriver::cancel_later(std::shared_ptr<StreamLine> line) {
  post([this, line = std::move(line)] {
    if (line->stream_ && !line->stream_->ended()) scheduler_->cancel(*line->stream_);
  });
}

void SchedulerDriver::cancel(StreamLine& line) {
  call([&] {
    if (line.stream_ && !line.stream_->ended()) scheduler_->cancel(*line.stream_);
  });
}

Result<std::vector<uint8_t>> SchedulerDriver::save(std::span<const uint32_t> tokens) {
  Result<std::vector<uint8_t>> out;
  call([&]() {
    while (turn()) {
    }
    const auto [a, b] = std::ranges::mismatch(scheduler_->held(), tokens);
    const uint32_t count = runner_.continues_from(static_cast<uint32_t>(b - tokens.begin()));
    out = gpu::run_to_completion(device_, runner_.save(count));
  });
  return out;
}

Result<void> SchedulerDriver::restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes) {
  Result<void> out;
  call([&]() {
    while (turn()) {
    }
    scheduler_->hold({});
    out = gpu::run_to_completion(device_, runner_.restore(static_cast<uint32_t>(tokens.size()), bytes));
    if (out) scheduler_->hold({tokens.begin(), tokens.end()});
  });
  return out;
}

Result<std::shared_ptr<const model::HeldImage>> SchedulerDriver::add_image(model::ImageStore& images,
                                                                           images::PreparedImage prepared) {
  Result<std::shared_ptr<const model::HeldImage>> added = fail(ErrorKind::kCancelled, "The model is closed.");
  call([&] { added = images.add(std::move(prepared)); });
  return added;
}

SchedulerLoad SchedulerDriver::load() {
  SchedulerLoad load;
  call([&] {
    const BlockTiers& blocks = scheduler_->blocks();
    load = {.running = static_cast<uint32_t>(scheduler_->running_count()),
            .waiting = static_cast<uint32_t>(scheduler_->waiting_count()),
            .free_blocks = blocks.pool().free_count(),
            .blocks = blocks.pool().block_count(),
            .block_len = blocks.pool().block_len(),
            .host_cache_bytes = blocks.host().used_bytes(),
            .objects_created = objects() - objects_at_start_};
  });
  return load;
}

}  // namespace doppler::engine
