// Decides who begins next: the highest level first. A level is the request's priority and one more for each `aging`
// that it has waited, so that every request comes to the top. Among the clients at that level it is deficit round robin
// (Shreedhar and Varghese 1996) over tokens; of a client's requests, the oldest. Equal clients that always have
// something waiting are thus served equal numbers of tokens, to within the quantum and twice the largest request.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <vector>

#include "engine/scheduler/sequence.h"

namespace doppler::engine {

class WaitingQueue {
 public:
  WaitingQueue(Clock::duration aging, uint32_t quantum) : aging_(aging), quantum_(quantum) {}

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  void push(Sequence& sequence);
  void remove(Sequence& sequence);
  // The one that begins next, of clients that `may` accepts; null: there is none. It stays in the queue until remove().
  // Another call gives the same one, if the queue has not changed.
  Sequence* pick(Clock::time_point now, const std::function<bool(uint64_t client)>& may);
  // One of the highest level; null: none waits.
  const Sequence* highest(Clock::time_point now) const;
  // The picked one has begun: its client pays, once, for its prompt and the longest answer.
  void charge(Sequence& sequence);
  // It has ended: what it did not use is given back.
  void refund(const Sequence& sequence);
  std::vector<Sequence*> expired(Clock::time_point now) const;

  // Priority and age. Higher ones also keep their blocks longer.
  int64_t level(const Sequence& sequence, Clock::time_point now) const {
    return sequence.request.priority + (now - sequence.submitted_at) / aging_;
  }

 private:
  using Fifo = std::map<uint64_t, Sequence*>;  // by serial: one that was preempted gets its old place
  struct Client {
    uint64_t id = 0;
    std::map<int32_t, Fifo> by_priority;  // no Fifo is empty
    int64_t deficit = 0;                  // tokens that it may still begin
  };
  static int64_t cost(const Sequence& sequence) { return int64_t{sequence.prompt_len} + sequence.limit; }
  static int64_t due(const Sequence& sequence) { return sequence.charged > 0 ? 0 : cost(sequence); }
  std::list<Client>::iterator find(uint64_t client);
  Sequence* best_of(const Client& client, Clock::time_point now) const;

  Clock::duration aging_;
  uint32_t quantum_;
  std::list<Client> ring_;  // clients with something waiting; the first has its turn
  size_t count_ = 0;
};

}  // namespace doppler::engine
