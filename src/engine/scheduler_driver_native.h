// Who runs a scheduler's turns, and the lines by which tokens go from them to whoever reads them. At first whoever
// waits for tokens runs the turns, since no other thread can be faster for one stream. From start_thread() on a
// thread does, which owns the device, and everything public may be called from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "doppler/scheduler.h"
#include "engine/scheduler/scheduler.h"
#include "engine/stream_answer.h"
#include "gpu/device.h"

namespace doppler::engine {

// One stream between the two threads.
class StreamLine {
 public:
  // `on_news`: called after each delivery, by who delivers; may be empty.
  explicit StreamLine(std::function<void()> on_news) : on_news_(std::move(on_news)) {}
  // Waits until there are tokens or the end, which a thread brings; SchedulerDriver::wait() needs none.
  Arrived wait();
  // Takes the tokens that are there, at most `most`, and the end after the last token. 0: all tokens.
  Arrived take(uint32_t most = 0);

  // By who carries it.
  void accept();           // it is in a queue
  void fail(Error error);  // it did not begin
  void set_cancelled();    // it did not begin; tell() says so
  void tell();
  bool is_over();
  // By who runs the turns. Null: it has not begun there.
  const std::shared_ptr<engine::Stream>& stream() const { return stream_; }

  // The dispatcher's: its number there, and the card that it was given to.
  uint64_t number = 0;
  size_t card = SIZE_MAX;

 private:
  friend class SchedulerDriver;
  bool has_news();
  bool deliver();  // by who runs the turns; true: the stream has ended

  std::shared_ptr<engine::Stream> stream_;  // of who runs the turns
  uint32_t told_evaluated_ = 0;             // there: of the prompt, at the last delivery
  const std::function<void()> on_news_;
  std::mutex mutex_;
  std::condition_variable came_;
  Arrived arrived_;
};

class SchedulerDriver {
 public:
  // Both must outlive it, and nobody else uses the device while it runs turns.
  static Result<std::unique_ptr<SchedulerDriver>> create(gpu::Device& device, model::SequenceRunner& runner,
                                                         SchedulerConfig config);
  ~SchedulerDriver();
  // Called by the thread.
  struct Hooks {
    std::function<void(const std::shared_ptr<StreamLine>&)> on_end;  // the stream has ended, or did not begin
    std::function<void()> on_turn;                                   // after each
  };
  void start_thread(Hooks hooks = {});  // the first call does
  bool has_thread() const { return thread_.joinable(); }

  // parent: the request goes on from a beginning of that stream's text. Null: it begins on its own.
  Result<std::shared_ptr<StreamLine>> submit(engine::Request request,
                                             std::shared_ptr<StreamLine> parent = nullptr);
  // The same without waiting. The line reports an impossible request.
  std::shared_ptr<StreamLine> submit_later(engine::Request request, std::shared_ptr<StreamLine> parent,
                                           std::function<void()> on_news);
  // The same for a line that is there.
  void begin_later(std::shared_ptr<StreamLine> line, engine::Request request,
                   std::shared_ptr<StreamLine> parent);
  // The errors that submit() would give at once. `waiting`: requests that wait elsewhere.
  Result<void> check(const engine::Request& request, size_t waiting);
  Result<void> check_now(const engine::Request& request, size_t waiting);  // by who runs the turns
  void post(std::function<void()> body);                                   // to be run there, between turns
  // A turn failed: the scheduler does nothing any more.
  bool is_lost() const { return lost_; }
  uint32_t places() const { return runner_.max_sequences(); }
  uint64_t cache_tokens() const { return uint64_t{runner_.block_count()} * runner_.block_len(); }
  uint32_t most_tokens(const engine::Request& request) const;  // of its answer
  // Waits until there are tokens or the end. `cancelled`, if it is not null, ends the stream when it is set.
  Arrived wait(const std::shared_ptr<StreamLine>& line, const std::atomic<bool>* cancelled);
  void cancel(StreamLine& line);
  void cancel_later(std::shared_ptr<StreamLine> line);
  SchedulerLoad load();
  // For a runner that holds its text (SequenceRunner::holds_text), while nothing runs: the cache of the longest
  // beginning of `tokens` after which the text can go on. restore() brings it back.
  Result<std::vector<uint8_t>> save(std::span<const uint32_t> tokens);
  Result<void> restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes);

 private:
  SchedulerDriver(gpu::Device& device, model::SequenceRunner& runner,
                  std::unique_ptr<engine::Scheduler> scheduler)
      : device_(device), runner_(runner), scheduler_(std::move(scheduler)), objects_at_start_(objects()) {}
  uint64_t objects() const;  // without those of plans that a generation was the first to need
  // By who runs the turns.
  Result<std::shared_ptr<engine::Stream>> begin(engine::Request request,
                                                const std::shared_ptr<StreamLine>& parent);
  void run();
  void call(const std::function<void()>& body);  // between turns; waits for it
  void finish_turns();
  void run_calls();
  void deliver();
  bool turn();

  gpu::Device& device_;
  model::SequenceRunner& runner_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  const uint64_t objects_at_start_;
  std::shared_ptr<StreamLine> awaited_;           // by wait(), without a thread
  const std::atomic<bool>* cancelled_ = nullptr;  // likewise
  std::list<std::shared_ptr<StreamLine>> lines_;  // of who runs the turns
  std::mutex mutex_;
  std::condition_variable called_, answered_;
  std::deque<std::function<void()>> calls_;
  bool stopping_ = false;
  std::atomic<bool> lost_ = false;
  Hooks hooks_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace doppler::engine
