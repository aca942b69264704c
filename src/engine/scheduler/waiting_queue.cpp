#include "engine/scheduler/waiting_queue.h"

#include <algorithm>
#include <limits>

namespace doppler::engine {

std::list<WaitingQueue::Client>::iterator WaitingQueue::find(uint64_t client) {
  return std::ranges::find(ring_, client, &Client::id);
}

void WaitingQueue::push(Sequence& sequence) {
  auto client = find(sequence.request.client);
  if (client == ring_.end()) client = ring_.insert(ring_.end(), {.id = sequence.request.client});
  client->by_priority[sequence.request.priority].emplace(sequence.serial, &sequence);
  ++count_;
}

void WaitingQueue::remove(Sequence& sequence) {
  const auto client = find(sequence.request.client);
  const auto fifo = client->by_priority.find(sequence.request.priority);
  fifo->second.erase(sequence.serial);
  if (fifo->second.empty()) client->by_priority.erase(fifo);
  if (client->by_priority.empty())
    ring_.erase(client);  // its deficit too: who asks for nothing saves nothing
  --count_;
}

Sequence* WaitingQueue::best_of(const Client& client, Clock::time_point now) const {
  Sequence* best = nullptr;
  for (const auto& [priority, fifo] : client.by_priority) {
    Sequence* oldest = fifo.begin()->second;
    if (!best || level(*oldest, now) > level(*best, now) ||
        (level(*oldest, now) == level(*best, now) && oldest->serial < best->serial)) {
      best = oldest;
    }
  }
  return best;
}

const Sequence* WaitingQueue::highest(Clock::time_point now) const {
  const Sequence* best = nullptr;
  for (const Client& client : ring_) {
    const Sequence* const sequence = best_of(client, now);
    if (!best || level(*sequence, now) > level(*best, now)) best = sequence;
  }
  return best;
}

Sequence* WaitingQueue::pick(Clock::time_point now, const std::function<bool(uint64_t client)>& may) {
  struct Candidate {
    std::list<Client>::iterator client;
    Sequence* sequence;
  };
  std::vector<Candidate> candidates;  // in the ring's order
  int64_t top = std::numeric_limits<int64_t>::min();
  for (auto client = ring_.begin(); client != ring_.end(); ++client) {
    if (!may(client->id)) continue;
    Sequence* sequence = best_of(*client, now);
    top = std::max(top, level(*sequence, now));
    candidates.push_back({client, sequence});
  }
  std::erase_if(candidates, [&](const Candidate& c) { return level(*c.sequence, now) < top; });
  if (candidates.empty()) return nullptr;

  // Rounds of the ring until somebody can pay, all at once.
  int64_t rounds = std::numeric_limits<int64_t>::max();
  for (const Candidate& c : candidates) {
    const int64_t lacking = due(*c.sequence) - c.client->deficit;
    rounds = std::min(rounds, lacking <= 0 ? 0 : (lacking + quantum_ - 1) / quantum_);
  }
  for (const Candidate& c : candidates) c.client->deficit += rounds * quantum_;
  const auto first = std::ranges::find_if(
      candidates, [](const Candidate& c) { return c.client->deficit >= due(*c.sequence); });
  return first->sequence;
}

void WaitingQueue::charge(Sequence& sequence) {
  const auto client = find(sequence.request.client);
  client->deficit -= due(sequence);
  if (sequence.charged == 0) sequence.charged = static_cast<uint64_t>(cost(sequence));
}

void WaitingQueue::refund(const Sequence& sequence) {
  const auto client = find(sequence.request.client);
  if (client == ring_.end() || sequence.charged == 0) return;
  const int64_t used = int64_t{sequence.prompt_len} + sequence.seen();
  client->deficit += static_cast<int64_t>(sequence.charged) - used;
}

std::vector<Sequence*> WaitingQueue::expired(Clock::time_point now) const {
  std::vector<Sequence*> out;
  for (const Client& client : ring_) {
    for (const auto& [priority, fifo] : client.by_priority) {
      for (const auto& [serial, sequence] : fifo) {
        if (!sequence->begun && sequence->request.deadline && *sequence->request.deadline < now) {
          out.push_back(sequence);
        }
      }
    }
  }
  return out;
}

}  // namespace doppler::engine
