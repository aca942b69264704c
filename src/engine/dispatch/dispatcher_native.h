// The way of requests to the schedulers of one or several devices. One device: it hands all on, and its scheduler's
// queue decides. Several: requests wait here, in the order of one WaitingQueue (priorities and clients hold over all
// devices), until a device has a place; choose_card() says which. A request runs to its end on the device that got it.
// A device whose turn fails gets nothing more, and its streams may go on elsewhere (moves()).
// Any thread may call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/dispatch/card_choice.h"
#include "engine/dispatch/card_prefixes.h"
#include "engine/scheduler/waiting_queue.h"
#include "engine/scheduler_driver_native.h"

namespace doppler::engine {

class Dispatcher {
 public:
  // The drivers must live until close(). If there are several, each has its thread.
  explicit Dispatcher(std::vector<SchedulerDriver*> cards);
  // No request goes to a driver any more. Call it before the first driver ends.
  void close();

  // As the functions of SchedulerDriver.
  Result<std::shared_ptr<StreamLine>> submit(Request request, std::shared_ptr<StreamLine> parent = nullptr);
  std::shared_ptr<StreamLine> submit_later(Request request, std::shared_ptr<StreamLine> parent,
                                           std::function<void()> on_news);
  Arrived wait(const std::shared_ptr<StreamLine>& line, const std::atomic<bool>* cancelled);
  void cancel(const std::shared_ptr<StreamLine>& line);
  void cancel_later(const std::shared_ptr<StreamLine>& line);
  SchedulerLoad load();
  Result<std::vector<uint8_t>> save(std::span<const uint32_t> tokens);
  Result<void> restore(std::span<const uint32_t> tokens, std::span<const uint8_t> bytes);

  // True if the line ended with an error because its device failed, while another one is there.
  bool moves(const StreamLine& line);

 private:
  static constexpr size_t kNowhere = SIZE_MAX;
  struct Entry {
    Sequence sequence;  // what the queue looks at; the request leaves it when a card gets it
    std::shared_ptr<StreamLine> line, parent;
    std::vector<PrefixKey> keys;
    size_t card = kNowhere;
  };
  bool has_one() const { return cards_.size() == 1; }
  size_t first_there();
  // Into the queue; first by the thread of a card, which checks the request.
  void enter_later(const std::shared_ptr<StreamLine>& line, Request request,
                   std::shared_ptr<StreamLine> parent);
  void enter(const std::shared_ptr<StreamLine>& line, Request request, std::shared_ptr<StreamLine> parent);
  std::vector<uint32_t> known_tokens(const Entry& entry);
  size_t holder(std::span<const uint32_t> tokens);
  // Hands out what has a place; ends what waited too long.
  void pump();
  void give(Entry& entry, size_t card);
  void note_end(const std::shared_ptr<StreamLine>& line);

  const std::vector<SchedulerDriver*> cards_;
  std::mutex mutex_;  // of all below
  std::vector<CardState> states_;
  CardPrefixes prefixes_;
  WaitingQueue queue_;
  std::map<uint64_t, Entry> entries_;  // by the lines' numbers
  uint64_t next_number_ = 1;
  std::atomic<size_t> waiting_ = 0;  // queue_.size(), for a look without the mutex
  bool closed_ = false;
};

}  // namespace doppler::engine
