// Sequences whose every token a guide must allow, among others. Masks come in time, the others get the tokens that they
// would get by themselves, and an end or an error of a guide affects only its own stream.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::text;

constexpr uint32_t kKinds = 5;

// The k-th token must be k modulo kKinds. It ends after `whole` tokens, or cannot go on after `broken`. After each free
// token the next `forces` ones are the smallest of their kind.
class CountingGuide final : public Guide {
 public:
  explicit CountingGuide(uint32_t whole, uint32_t broken = 0, uint32_t forces = 0)
      : whole_(whole), broken_(broken), forces_(forces) {}
  Result<std::vector<uint32_t>> allowed() override {
    if (broken_ != 0 && count_ == broken_) return fail(ErrorKind::kUnsupported, "It cannot go on.");
    std::vector<uint32_t> mask((testing::RunnerShape().vocab + 31) / 32);
    for (uint32_t token = 0; token < testing::RunnerShape().vocab; ++token) {
      const bool follows = is_forced(count_) ? token == count_ % kKinds : token % kKinds == count_ % kKinds;
      if (follows) mask[token / 32] |= 1u << token % 32;
    }
    return mask;
  }
  Result<std::vector<uint32_t>> forced() override {
    std::vector<uint32_t> out;
    for (uint32_t at = count_; is_forced(at); ++at) out.push_back(at % kKinds);
    return out;
  }
  Result<bool> accept(uint32_t token) override {
    EXPECT_EQ(token % kKinds, count_ % kKinds);
    return ++count_ != whole_;
  }

 private:
  bool is_forced(uint32_t at) const { return forces_ != 0 && at % (forces_ + 1) != 0; }

  uint32_t whole_, broken_, forces_, count_ = 0;
};

Request guided(std::vector<uint32_t> prompt, uint32_t most, uint32_t whole, uint32_t broken = 0,
               uint32_t forces = 0) {
  Request request = ask(std::move(prompt), most);
  request.settings.masked = true;
  request.guide = std::make_shared<CountingGuide>(whole, broken, forces);
  return request;
}

TEST(Guides, GuidedAndOthersRunTogether) {
  Script s({.ctx_len = 200, .blocks = 200});
  const Request plain = ask(text(6, 3), 60);
  const StreamPtr other = s.submit(plain), ends = s.submit(guided(text(5, 1), 100, 12)),
                  limited = s.submit(guided(text(40, 2), 20, 0)),
                  breaks = s.submit(guided(text(5, 4), 100, 0, 3)), none = s.submit(ask(text(5, 4), 1));
  s.run();
  s.expect_alone(other, plain);
  EXPECT_EQ(ends->reason(), StopReason::kEndOfText);
  EXPECT_EQ(ends->take().size(), 12u);
  EXPECT_EQ(limited->reason(), StopReason::kTokenLimit);
  EXPECT_EQ(limited->take().size(), 20u);
  ASSERT_TRUE(breaks->error());
  EXPECT_EQ(breaks->take().size(), 3u);
  EXPECT_TRUE(none->ended());
  EXPECT_GT(s.runner.calls.back().steps, 1u) << "once no guided one runs, the others decode in batches again";
  EXPECT_EQ(s.runner.most_outstanding, 2u) << "the device has a step of the others meanwhile";
}

// Beside one that decodes freely, with blocks for all or for too few, with recurrent states or none; ends and limits
// within and after the forced tokens.
TEST(Guides, ForcedTokensAreAppendedAndChangeNothing) {
  constexpr uint32_t kForces = 6;
  for (const auto& [blocks, has_states] : {std::pair(200u, false), {24u, false}, {200u, true}, {24u, true}}) {
    std::vector<std::vector<std::vector<uint32_t>>> texts;
    for (const bool appends : {false, true}) {
      Script s({.sequences = 4, .ctx_len = 64, .blocks = blocks}, {.appends_forced = appends});
      s.runner.states = has_states;
      const Request plain = ask(text(6, 3), 40);
      const StreamPtr other = s.submit(plain);
      std::vector<StreamPtr> streams;
      for (const auto& [most, whole] : {std::pair(50u, 0u), {100u, 23u}, {19u, 0u}, {3u, 0u}, {100u, 15u}})
        streams.push_back(s.submit(guided(text(8, most + whole), most, whole, 0, kForces)));
      s.run();
      s.expect_alone(other, plain);
      auto& of = texts.emplace_back();
      for (const StreamPtr& stream : streams) {
        of.push_back(stream->take());
        const uint32_t forced = stream->timings().forced_tokens;
        if (!appends || blocks == 200) {
          EXPECT_EQ(forced, appends ? of.back().size() - (of.back().size() + kForces) / (kForces + 1) : 0u);
        }
      }
    }
    EXPECT_EQ(texts[0], texts[1]) << blocks << " blocks";
  }
}

TEST(Guides, APreemptedOneGoesOnWhereItWas) {
  Script s({.sequences = 3, .ctx_len = 64, .blocks = 20});
  std::vector<StreamPtr> streams;
  for (uint32_t i = 0; i < 3; ++i) streams.push_back(s.submit(guided(text(8, i + 1), 50, 0)));
  s.run();
  uint32_t preemptions = 0;
  for (const StreamPtr& stream : streams) {
    EXPECT_EQ(stream->take().size(), 50u);
    preemptions += stream->timings().preemptions;
  }
  EXPECT_GT(preemptions, 0u);
}

TEST(Guides, WhatTheRunnerLacksIsRefusedBeforeItBegins) {
  Script s;
  Request request = ask(text(4), 5);
  request.settings.sampling.min_tokens = 3;
  EXPECT_FALSE(s.scheduler->submit(request));
  const StreamPtr good = s.submit(ask(text(4), 5));
  s.run();
  EXPECT_EQ(good->take().size(), 5u);
}

}  // namespace
}  // namespace doppler::engine
