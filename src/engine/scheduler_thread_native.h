// The thread that runs a scheduler's turns, and the lines by which tokens go from it to whoever reads them. It owns the
// device from its start on. Everything public may be called from any thread.
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
  // `on_news`: called on the scheduler's thread behind each delivery; may be empty.
  StreamLine(std::shared_ptr<engine::Stream> stream, std::function<void()> on_news)
      : stream_(std::move(stream)), on_news_(std::move(on_news)) {
    arrived_.accepted = stream_ != nullptr;
  }
  // Waits until there are tokens or the end.
  Arrived wait();
  // What is there, if only nothing; of the tokens at most so many, and the end after all of them. 0: all.
  Arrived take(uint32_t most = 0);

 private:
  friend class SchedulerThread;
  bool deliver();  // on the scheduler's thread; true: the stream has ended
  void accept(std::shared_ptr<engine::Stream> stream);  // there: it is in the queue
  void fail(Error error);                               // there: it did not begin

  std::shared_ptr<engine::Stream> stream_;  // the scheduler's thread alone
  uint32_t told_evaluated_ = 0;             // there: of the prompt, at the last delivery
  const std::function<void()> on_news_;
  std::mutex mutex_;
  std::condition_variable came_;
  Arrived arrived_;
};

class SchedulerThread {
 public:
  // Both must outlive the thread, and nobody else uses the device from here on.
  static Result<std::unique_ptr<SchedulerThread>> start(gpu::Device& device, model::SequenceRunner& runner,
                                                        SchedulerConfig config);
  ~SchedulerThread();

  // parent: the request goes on from a beginning of that stream's text. Null: it begins on its own.
  Result<std::shared_ptr<StreamLine>> submit(engine::Request request,
                                             std::shared_ptr<StreamLine> parent = nullptr);
  // The same without waiting. What the request cannot be, the line tells.
  std::shared_ptr<StreamLine> submit_later(engine::Request request, std::shared_ptr<StreamLine> parent,
                                           std::function<void()> on_news);
  void cancel(StreamLine& line);
  void cancel_later(std::shared_ptr<StreamLine> line);
  SchedulerLoad load();

 private:
  SchedulerThread(gpu::Device& device, std::unique_ptr<engine::Scheduler> scheduler)
      : device_(device), scheduler_(std::move(scheduler)), objects_at_start_(objects_of(device)) {}
  static uint64_t objects_of(const gpu::Device& device);
  // On the scheduler's thread.
  Result<std::shared_ptr<engine::Stream>> begin(engine::Request request,
                                                const std::shared_ptr<StreamLine>& parent);
  void run();
  void call(const std::function<void()>& body);  // on the scheduler's thread; waits for it
  void post(std::function<void()> body);         // there, later
  void run_calls();
  void deliver();
  bool turn();

  gpu::Device& device_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  const uint64_t objects_at_start_;
  std::list<std::shared_ptr<StreamLine>> lines_;  // the scheduler's thread alone
  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<std::function<void()>> calls_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace doppler::engine
