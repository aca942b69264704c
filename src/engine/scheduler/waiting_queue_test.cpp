// Who begins next: order within a client, shares among clients, priorities, age, deadlines.
#include "engine/scheduler/waiting_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace doppler::engine {
namespace {

using std::chrono::seconds;

constexpr auto kAnybody = [](uint64_t) { return true; };

struct Queue {
  explicit Queue(uint32_t quantum = 16) : queue(seconds(10), quantum) {}

  Sequence& add(uint64_t client, uint32_t prompt_len, uint32_t limit, int32_t priority = 0) {
    auto sequence = std::make_unique<Sequence>();
    sequence->serial = all.size() + 1;
    sequence->request.client = client;
    sequence->request.priority = priority;
    sequence->prompt_len = prompt_len;
    sequence->limit = limit;
    sequence->submitted_at = now;
    sequence->stream = std::make_shared<Stream>(sequence->serial, std::vector<uint32_t>(prompt_len, 1));
    all.push_back(std::move(sequence));
    queue.push(*all.back());
    return *all.back();
  }
  Sequence* next() {
    Sequence* sequence = queue.pick(now, kAnybody);
    if (!sequence) return nullptr;
    queue.charge(*sequence);
    queue.remove(*sequence);
    return sequence;
  }
  std::vector<uint64_t> order() {
    std::vector<uint64_t> serials;
    while (const Sequence* sequence = next()) serials.push_back(sequence->serial);
    return serials;
  }

  WaitingQueue queue;
  Clock::time_point now{};
  std::vector<std::unique_ptr<Sequence>> all;
};

TEST(WaitingQueue, FirstComeFirstServedWithinAClient) {
  Queue q;
  for (const uint32_t size : {100u, 1u, 50u, 7u}) q.add(1, size, 1);
  EXPECT_EQ(q.order(), (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(WaitingQueue, HigherPrioritiesFirst) {
  Queue q;
  for (const int32_t priority : {0, 2, 1, 2, 0}) q.add(static_cast<uint64_t>(priority), 4, 4, priority);
  EXPECT_EQ(q.order(), (std::vector<uint64_t>{2, 4, 3, 1, 5}));
}

TEST(WaitingQueue, AskedAgainItGivesTheSame) {
  Queue q;
  for (uint64_t client = 0; client < 5; ++client) q.add(client, 10 * static_cast<uint32_t>(5 - client), 3);
  const Sequence* first = q.queue.pick(q.now, kAnybody);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(q.queue.pick(q.now, kAnybody), first);
}

TEST(WaitingQueue, ClientsThatMayNotAreLeftOut) {
  Queue q;
  q.add(1, 4, 4);
  q.add(2, 4, 4);
  EXPECT_EQ(q.queue.pick(q.now, [](uint64_t client) { return client == 2; })->serial, 2u);
  EXPECT_EQ(q.queue.pick(q.now, [](uint64_t) { return false; }), nullptr);
}

// Ten seconds are a priority: a request of priority 0 comes before those of 3 that are more than 30 s younger.
TEST(WaitingQueue, NobodyStarves) {
  Queue q;
  const Sequence& low = q.add(1, 4, 4, 0);
  uint32_t overtaken = 0;
  for (; overtaken < 1000; ++overtaken) {
    q.add(2, 4, 4, 3);
    if (q.next() == &low) break;
    q.now += seconds(1);
  }
  EXPECT_LE(overtaken, 40u);
}

// Two clients that always have something waiting are served equally, whatever the size of their requests, to within
// the quantum and twice the largest one.
TEST(WaitingQueue, ClientsAreServedEqually) {
  for (const uint32_t quantum : {1u, 16u, 512u}) {
    Queue q(quantum);
    std::mt19937 random(quantum);
    const uint32_t most[] = {300, 20, 90};
    int64_t served[] = {0, 0, 0};
    const auto add = [&](uint64_t client) {
      q.add(client, 1 + static_cast<uint32_t>(random() % most[client]), 5);
    };
    for (uint64_t client = 0; client < 6; ++client) add(client / 2);
    for (int i = 0; i < 3000; ++i) {
      const Sequence* sequence = q.next();
      const uint64_t client = sequence->request.client;
      add(client);
      served[client] += sequence->prompt_len + sequence->limit;
      const auto [least, greatest] = std::ranges::minmax(served);
      ASSERT_LE(greatest - least, quantum + 2 * 305) << "after " << i;
    }
  }
}

TEST(WaitingQueue, WhatWasNotUsedIsGivenBack) {
  Queue q(1);
  Sequence& greedy = q.add(1, 10, 1000);  // allowed 1000 tokens, takes none
  for (int i = 0; i < 40; ++i) q.add(1, 10, 10);
  for (int i = 0; i < 200; ++i) q.add(2, 10, 10);
  while (q.next() != &greedy) {
  }
  q.queue.refund(greedy);
  uint32_t mine = 0;
  for (int i = 0; i < 60; ++i) mine += q.next()->request.client == 1 ? 1 : 0;
  EXPECT_EQ(mine, 40u) << "all that waits is paid by what came back";
}

TEST(WaitingQueue, APreemptedRequestHasItsOldPlaceAndPaysNothing) {
  Queue q(1);
  Sequence& first = q.add(1, 100, 100);
  q.add(1, 1, 1);
  EXPECT_EQ(q.next(), &first);
  q.queue.push(first);
  q.add(2, 1, 1);  // costs less than the first did
  const uint64_t charged = first.charged;
  EXPECT_EQ(q.next(), &first);
  EXPECT_EQ(first.charged, charged);
}

TEST(WaitingQueue, OnlyThoseThatHaveNotBegunExpire) {
  Queue q;
  Sequence& begun = q.add(1, 4, 4);
  Sequence& late = q.add(1, 4, 4);
  q.add(1, 4, 4).request.deadline = q.now + seconds(5);
  q.add(1, 4, 4);
  begun.begun = true;
  begun.request.deadline = late.request.deadline = q.now + seconds(1);
  EXPECT_TRUE(q.queue.expired(q.now + seconds(1)).empty());
  EXPECT_EQ(q.queue.expired(q.now + seconds(2)), std::vector<Sequence*>{&late});
}

}  // namespace
}  // namespace doppler::engine
