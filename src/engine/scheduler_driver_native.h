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
#include "model/image_store.h"

namespace doppler::engine {

// One stream between the two threads.
class StreamLine {
 public:
  // `on_news`: who runs the turns calls it after each delivery; may be empty.
  StreamLine(std::shared_ptr<engine::Stream> stream, std::function<void()> on_news)
      : stream_(std::move(stream)), on_news_(std::move(on_news)) {}
  // Waits until there are tokens or the end, which a thread brings; SchedulerDriver::wait() needs none.
  Arrived wait();
  // What is there, if only nothing.
  Arrived take();

 private:
  friend class SchedulerDriver;
  bool has_news();
  bool deliver();          // by who runs the turns; true: the stream has ended
  void fail(Error error);  // there: it did not begin

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
  void start_thread();  // the first call does
  bool has_thread() const { return thread_.joinable(); }

  // parent: the request goes on from a beginning of that stream's text. Null: it begins on its own.
  Result<std::shared_ptr<StreamLine>> submit(engine::Request request,
                                             std::shared_ptr<StreamLine> parent = nullptr);
  // The same without waiting. What the request cannot be, the line tells.
  std::shared_ptr<StreamLine> submit_later(engine::Request request, std::shared_ptr<StreamLine> parent,
                                           std::function<void()> on_news);
  // Waits until there are tokens or the end. `cancelled`, if it is not null, ends the stream when it is set.
  Arrived wait(const std::shared_ptr<StreamLine>& line, const std::atomic<bool>* cancelled);
  void cancel(StreamLine& line);
  void cancel_later(std::shared_ptr<StreamLine> line);
  SchedulerLoad load();
  // Between turns, which read the pictures.
  Result<std::shared_ptr<const model::HeldImage>> add_image(model::ImageStore& images,
                                                            images::PreparedImage prepared);
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
  void post(std::function<void()> body);         // there, later
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
  std::condition_variable called_;
  std::deque<std::function<void()>> calls_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace doppler::engine
