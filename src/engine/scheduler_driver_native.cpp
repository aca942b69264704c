#include "engine/scheduler_driver_native.h"

#include <algorithm>

#include "gpu/objects_made.h"

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

Arrived StreamLine::take(uint32_t most) {
  const std::lock_guard lock(mutex_);
  Arrived out = arrived_;
  if (most == 0 || out.tokens.size() <= most) {
    arrived_.tokens.clear();
    arrived_.logprobs.clear();
    return out;
  }
  const auto keep_rest = [most](auto& all, auto& taken) {
    if (all.empty()) return;
    all.erase(all.begin(), all.begin() + most);
    taken.resize(most);
  };
  keep_rest(arrived_.tokens, out.tokens);
  keep_rest(arrived_.logprobs, out.logprobs);
  out.ended = false;
  out.has_more = true;
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
  tell();
  return ended;
}

void StreamLine::accept() {
  {
    const std::lock_guard lock(mutex_);
    arrived_.accepted = true;
  }
  if (on_news_) on_news_();
}

void StreamLine::set_cancelled() {
  const std::lock_guard lock(mutex_);
  arrived_.ended = true;
  if (!arrived_.error) arrived_.reason = StopReason::kCancelled;
}

void StreamLine::tell() {
  came_.notify_one();
  if (on_news_) on_news_();
}

bool StreamLine::is_over() {
  const std::lock_guard lock(mutex_);
  return arrived_.ended;
}

void StreamLine::fail(Error error) {
  {
    const std::lock_guard lock(mutex_);
    arrived_.ended = true;
    arrived_.error = std::move(error);
  }
  tell();
}

Result<std::unique_ptr<SchedulerDriver>> SchedulerDriver::create(gpu::Device& device,
                                                                 model::SequenceRunner& runner,
                                                                 SchedulerConfig config) {
  DP_TRY(std::unique_ptr<engine::Scheduler> scheduler, engine::Scheduler::create(runner, std::move(config)));
  return std::unique_ptr<SchedulerDriver>(new SchedulerDriver(device, runner, std::move(scheduler)));
}

void SchedulerDriver::start_thread(Hooks hooks) {
  if (has_thread()) return;
  hooks_ = std::move(hooks);
  thread_ = std::thread([this] { run(); });
}

uint64_t SchedulerDriver::objects() const {
  return gpu::objects_made(device_.counters()) - runner_.objects_created_later();
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

// Waits for everything queued, since it uses the device.
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
  if (!more) lost_ = true;
  deliver();
  if (hooks_.on_turn) hooks_.on_turn();
  return more && *more;
}

void SchedulerDriver::deliver() {
  std::erase_if(lines_, [this](const std::shared_ptr<StreamLine>& line) {
    if (!line->deliver()) return false;
    if (hooks_.on_end) hooks_.on_end(line);
    return true;
  });
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
  bool is_done = false;
  post([&] {
    body();
    const std::lock_guard lock(mutex_);
    is_done = true;
    answered_.notify_all();
  });
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [&] { return is_done; });
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
    if (!stream) return;
    line = lines_.emplace_back(std::make_shared<StreamLine>(nullptr));
    line->stream_ = *stream;
    line->accept();
  });
  if (!stream) return forward(std::move(stream).error());
  return line;
}

Result<void> SchedulerDriver::check_now(const engine::Request& request, size_t waiting) {
  return scheduler_->check(request, waiting);
}

Result<void> SchedulerDriver::check(const engine::Request& request, size_t waiting) {
  Result<void> out;
  call([&] { out = check_now(request, waiting); });
  return out;
}

uint32_t SchedulerDriver::most_tokens(const engine::Request& request) const {
  return engine::most_tokens(request, runner_.ctx_len());
}

std::shared_ptr<StreamLine> SchedulerDriver::submit_later(engine::Request request,
                                                          std::shared_ptr<StreamLine> parent,
                                                          std::function<void()> on_news) {
  auto line = std::make_shared<StreamLine>(std::move(on_news));
  begin_later(line, std::move(request), std::move(parent));
  return line;
}

void SchedulerDriver::begin_later(std::shared_ptr<StreamLine> line, engine::Request request,
                                  std::shared_ptr<StreamLine> parent) {
  post([this, line = std::move(line), parent = std::move(parent), request = std::move(request)] {
    auto stream = begin(request, parent);
    if (!stream) {
      line->fail(std::move(stream).error());
      if (hooks_.on_end) hooks_.on_end(line);
      return;
    }
    line->stream_ = std::move(*stream);
    line->accept();
    lines_.push_back(line);
  });
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
    load.devices = {{.name = device_.caps().adapter,
                     .running = load.running,
                     .waiting = load.waiting,
                     .free_blocks = load.free_blocks,
                     .blocks = load.blocks,
                     .is_lost = is_lost()}};
  });
  return load;
}

}  // namespace doppler::engine
