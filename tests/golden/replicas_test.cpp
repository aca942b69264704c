// The model on two devices: one adapter, opened twice. Answers equal those of one device in the lane exact, and those
// of a device that is lost go on on the other.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/process.h"
#include "doppler/scheduler.h"
#include "engine/api_impl.h"
#include "engine/scheduler_driver_native.h"
#include "gpu/device_native.h"

namespace doppler {
namespace {

constexpr const char* kPrompts[] = {"The fox and the crow", "In the spring of the year",
                                    "There was once a king who had", "An old woman lived with her son"};

Model load(const char* device, uint32_t sequences) {
  LoadOptions options;
  options.device = device;
  options.lane = "exact";
  options.ctx_len = 128;
  options.chunk = 32;
  options.sequences = sequences;
  options.tuned = false;
  auto model = Model::load(DOPPLER_SOURCE_DIR "/models/storyteller.gguf", options);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    std::exit(1);
  }
  return std::move(*model);
}

GenerateOptions sampled(uint32_t tokens) {
  GenerateOptions options;
  options.sampling.seed = 7;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  return options;
}

std::vector<std::string> alone(uint32_t tokens) {
  Model model = load("0", 2);
  auto scheduler = model.scheduler();
  std::vector<std::string> texts;
  for (const char* prompt : kPrompts) {
    auto stream = scheduler->submit({.prompt = prompt, .options = sampled(tokens)});
    const auto answer = stream->finish();
    EXPECT_TRUE(answer) << answer.error().message();
    texts.push_back(answer->text);
  }
  return texts;
}

std::vector<Stream> submit_all(Scheduler& scheduler, uint32_t tokens) {
  std::vector<Stream> streams;
  for (const char* prompt : kPrompts) {
    auto stream = scheduler.submit({.prompt = prompt, .options = sampled(tokens)});
    EXPECT_TRUE(stream) << stream.error().message();
    streams.push_back(std::move(*stream));
  }
  return streams;
}

TEST(Replicas, AnswerAsOneDeviceDoes) {
  const std::vector<std::string> wanted = alone(12);
  Model model = load("0,0", 2);
  EXPECT_EQ(model.info().adapter, "2 x " + model.impl().device->caps().adapter);
  const uint64_t before = model.impl().others[0]->device->counters().submits;
  auto scheduler = model.scheduler();
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  std::vector<Stream> streams = submit_all(*scheduler, 12);
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto answer = streams[i].finish();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->text, wanted[i]);
  }
  EXPECT_GT(model.impl().others[0]->device->counters().submits, before);
  const SchedulerLoad load = scheduler->load();
  ASSERT_EQ(load.devices.size(), 2u);
  EXPECT_EQ(load.blocks, load.devices[0].blocks + load.devices[1].blocks);
  EXPECT_EQ(load.objects_created, 0u);
}

TEST(Replicas, ALostDevicesAnswersGoOnOnTheOther) {
  constexpr uint32_t kTokens = 48;  // more than a device has queued when it is lost
  const std::vector<std::string> wanted = alone(kTokens);
  Model model = load("0,0", 2);
  auto scheduler = model.scheduler();
  std::vector<Stream> streams = submit_all(*scheduler, kTokens);
  for (Stream& stream : streams) {
    while (stream.so_far().tokens.size() < 3) {
      const auto piece = stream.next();
      ASSERT_TRUE(piece && *piece);
    }
  }
  engine::Card& lost = *model.impl().others[0];
  lost.driver->post([&lost] { static_cast<gpu::NativeDevice&>(*lost.device).lose_for_test(); });
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto answer = streams[i].finish();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->text, wanted[i]);
    EXPECT_EQ(answer->timings.generated_tokens, kTokens);
  }
  const SchedulerLoad load = scheduler->load();
  EXPECT_FALSE(load.devices[0].is_lost);
  EXPECT_TRUE(load.devices[1].is_lost);
  auto next = scheduler->submit({.prompt = kPrompts[0], .options = sampled(kTokens)});
  const auto answer = next->finish();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text, wanted[0]);
}

TEST(Replicas, SessionsOfOneSequenceRunAtOnceAndAreSaved) {
  const std::string path = testing::TempDir() + "doppler_replicas." + std::to_string(process_id());
  Model model = load("0,0", 1);
  std::string first[2], second[2];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      Session session = model.new_session();
      const auto begun = session.generate(kPrompts[i], sampled(8));
      ASSERT_TRUE(begun) << begun.error().message();
      first[i] = begun->text;
      ASSERT_TRUE(session.save(path + std::to_string(i)));
      const auto gone_on = session.generate(" and", sampled(8));
      ASSERT_TRUE(gone_on) << gone_on.error().message();
      second[i] = gone_on->text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  Model one = load("0", 1);
  for (size_t i = 0; i < 2; ++i) {
    Session session = one.new_session();
    ASSERT_TRUE(session.restore(path + std::to_string(i)));
    EXPECT_EQ(session.generate(" and", sampled(8))->text, second[i]);
    Session other = model.new_session();
    ASSERT_TRUE(other.restore(path + std::to_string(i)));
    EXPECT_EQ(other.generate(" and", sampled(8))->text, second[i]);
    EXPECT_EQ(one.new_session().generate(kPrompts[i], sampled(8))->text, first[i]);
    std::remove((path + std::to_string(i)).c_str());
  }
}

}  // namespace
}  // namespace doppler
