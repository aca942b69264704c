// Adapters under the scheduler: which sequences share blocks, from which position on, and which wait for a slot of the
// arena. The scripted runner's positions remember their adapters as keys and values do.
#include <gtest/gtest.h>

#include "engine/scheduler/test_script.h"

namespace doppler::engine {
namespace {

using testing::ask;
using testing::Script;
using testing::StreamPtr;
using testing::text;

using Mix = std::shared_ptr<const model::AdapterMix>;

Mix adapter(uint32_t serial, float scale = 1, std::vector<uint32_t> invocation = {}) {
  auto fitted = std::make_shared<formats::FittedAdapter>();
  fitted->serial = serial;
  fitted->invocation_tokens = std::move(invocation);
  return std::make_shared<model::AdapterMix>(model::AdapterMix{.parts = {{std::move(fitted), scale}}});
}

Request ask_with(Mix mix, std::vector<uint32_t> tokens, uint32_t max_tokens, uint64_t client) {
  Request request = ask(std::move(tokens), max_tokens, client);
  request.settings.adapters = std::move(mix);
  request.first_adapters = false;
  return request;
}

TEST(Adapters, BlocksAreSharedAmongEqualAdaptersAndScales) {
  Script s({.sequences = 8, .ctx_len = 128, .blocks = 256});
  const Mix one = adapter(1), half = adapter(1, 0.5f), two = adapter(2);
  std::vector<Request> requests;
  std::vector<StreamPtr> streams;
  for (int round = 0; round < 2; ++round) {
    for (const Mix& mix : {Mix(), one, half, two}) {
      requests.push_back(ask_with(mix, text(41), 10, requests.size()));
      streams.push_back(s.submit(requests.back()));
    }
  }
  s.run();
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(streams[i]->timings().cached_tokens, i < 4 ? 0u : 40u) << i;
    s.expect_alone(streams[i], requests[i]);
  }
}

TEST(Adapters, AnActivatedAdapterSharesTheBlocksBeforeItsInvocation) {
  Script s({.ctx_len = 128, .blocks = 256});
  std::vector<uint32_t> prompt = text(30);
  prompt.insert(prompt.end(), {90, 91});
  const std::vector<uint32_t> after = text(8, 5);
  prompt.insert(prompt.end(), after.begin(), after.end());
  const Request base = ask_with(nullptr, prompt, 5, 1);
  Request invoked = ask_with(adapter(1, 1, {90, 91}), prompt, 5, 2);
  const StreamPtr first = s.submit(base);
  s.run();
  const StreamPtr second = s.submit(invoked);
  s.run();
  const StreamPtr third = s.submit(invoked);
  s.run();
  invoked.settings.adapters_from = 30;
  s.expect_alone(first, base);
  s.expect_alone(second, invoked);
  s.expect_alone(third, invoked);
  EXPECT_EQ(second->timings().cached_tokens, 28u);  // whole blocks of four before position 30
  EXPECT_EQ(third->timings().cached_tokens, 39u);
}

TEST(Adapters, AnActivatedAdapterThatIsNotInvokedIsNotUsed) {
  Script s;
  const Request asked = ask_with(adapter(1, 1, {90, 91}), text(20), 5, 1),
                base = ask_with(nullptr, text(20), 5, 1);
  const StreamPtr stream = s.submit(asked);
  s.run();
  s.expect_alone(stream, base);
}

TEST(Adapters, ARequestWaitsUntilASlotOfTheArenaIsFree) {
  Script s;
  s.runner.adapter_slots = 1;
  const Request one = ask_with(adapter(1), text(9), 12, 1),
                same = ask_with(one.settings.adapters, text(6, 3), 4, 2),
                two = ask_with(adapter(2), text(7, 2), 5, 3), none = ask_with(nullptr, text(8, 4), 5, 4);
  const StreamPtr a = s.submit(one), b = s.submit(same), c = s.submit(two), d = s.submit(none);
  s.run_to(*a, 6);
  EXPECT_EQ(c->timings().generated_tokens, 0u);
  s.run();
  s.expect_alone(a, one);
  s.expect_alone(b, same);
  s.expect_alone(c, two);
  s.expect_alone(d, none);
  EXPECT_EQ(s.runner.adapter_loads, 2u);
}

}  // namespace
}  // namespace doppler::engine
