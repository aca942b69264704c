// The model on two devices: one adapter, opened twice. Answers equal those of one device in the lane exact, and those
// of a device that is lost go on on the other.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
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

const std::string kStoryteller = DOPPLER_SOURCE_DIR "/models/storyteller.gguf";

// In the lane exact, for two sequences on each device. `set` changes the options.
Model load(const std::string& path, const char* device, const std::function<void(LoadOptions&)>& set = {}) {
  LoadOptions options;
  options.device = device;
  options.lane = "exact";
  options.ctx_len = 128;
  options.chunk = 32;
  options.sequences = 2;
  options.tuned = false;
  if (set) set(options);
  auto model = Model::load(path, options);
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message().c_str());
    std::exit(1);
  }
  return std::move(*model);
}

// The submits of the second device; 0 without one.
uint64_t submits_of_other(Model& model) {
  const auto& others = Model::Impl::of(model).others;
  return others.empty() ? 0 : others[0]->device->counters().submits;
}

std::vector<std::vector<int32_t>> tokens_of(std::vector<Stream>& streams) {
  std::vector<std::vector<int32_t>> out;
  for (Stream& stream : streams) {
    const auto answer = stream.finish();
    EXPECT_TRUE(answer) << answer.error().message();
    out.push_back(answer->tokens);
  }
  return out;
}

GenerateOptions sampled(uint32_t tokens) {
  GenerateOptions options;
  options.sampling.seed = 7;
  options.max_tokens = tokens;
  options.ignore_eos = true;
  return options;
}

std::vector<std::string> alone(uint32_t tokens) {
  Model model = load(kStoryteller, "0");
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
  Model model = load(kStoryteller, "0,0");
  EXPECT_EQ(model.info().adapter, "2 x " + Model::Impl::of(model).device->caps().adapter);
  const uint64_t before = Model::Impl::of(model).others[0]->device->counters().submits;
  auto scheduler = model.scheduler();
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  std::vector<Stream> streams = submit_all(*scheduler, 12);
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto answer = streams[i].finish();
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->text, wanted[i]);
  }
  EXPECT_GT(Model::Impl::of(model).others[0]->device->counters().submits, before);
  const SchedulerLoad load = scheduler->load();
  ASSERT_EQ(load.devices.size(), 2u);
  EXPECT_EQ(load.blocks, load.devices[0].blocks + load.devices[1].blocks);
  EXPECT_EQ(load.objects_created, 0u);
}

// Each request once on each device: more at once than one has places for.
TEST(Replicas, WhatRequestsAskForIsThatOfOneDevice) {
  std::vector<GenerateOptions> asked(4, sampled(8));
  asked[0].grammar = {GrammarKind::kRegex, "(yes|no), (fox|crow){2,5}\\.", {}};
  asked[0].ignore_eos = false;
  asked[0].max_tokens = 24;
  asked[1].logprobs = true;
  asked[2].sampling.frequency_penalty = 0.8f;
  asked[2].sampling.dry_multiplier = 2;
  asked[3].draft = "lookup";
  asked[3].draft_rows = 4;
  asked[3].prediction = "The fox and the crow The fox and the crow";
  Model one = load(kStoryteller, "0"), two = load(kStoryteller, "0,0");
  auto of_one = one.scheduler(), of_two = two.scheduler();
  ASSERT_TRUE(of_one && of_two);
  const uint64_t before = submits_of_other(two);
  for (const GenerateOptions& options : asked) {
    const auto wanted = of_one->submit({.prompt = kPrompts[0], .options = options})->finish();
    ASSERT_TRUE(wanted) << wanted.error().message();
    std::vector<Stream> streams;
    for (int i = 0; i < 4; ++i) {
      auto stream = of_two->submit({.prompt = kPrompts[0], .options = options});
      ASSERT_TRUE(stream) << stream.error().message();
      streams.push_back(std::move(*stream));
    }
    for (Stream& stream : streams) {
      const auto got = stream.finish();
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(got->tokens, wanted->tokens);
      EXPECT_EQ(got->logprobs.size(), options.logprobs ? got->tokens.size() : 0);
    }
  }
  EXPECT_GT(submits_of_other(two), before);
}

// Models that are loaded in some way of their own.
struct Loading {
  const char *name, *folder;
  void (*set)(LoadOptions&);
};
class ReplicasOf : public testing::TestWithParam<Loading> {};

TEST_P(ReplicasOf, AnswerAsOneDeviceDoes) {
  const auto answers = [](const char* device) {
    Model model = load(std::string(GOLDEN_DIR "/") + GetParam().folder, device, GetParam().set);
    auto scheduler = model.scheduler();
    EXPECT_TRUE(scheduler) << scheduler.error().message();
    const uint64_t before = submits_of_other(model);
    std::vector<Stream> streams;
    for (int32_t i = 0; i < 6; ++i) {
      auto stream =
          scheduler->submit({.prompt = std::vector<int32_t>{40 + i, 7, 90, 11}, .options = sampled(8)});
      EXPECT_TRUE(stream) << stream.error().message();
      streams.push_back(std::move(*stream));
    }
    std::vector<std::vector<int32_t>> out = tokens_of(streams);
    EXPECT_EQ(submits_of_other(model) > before, std::string_view(device) == "0,0");
    return out;
  };
  EXPECT_EQ(answers("0,0"), answers("0"));
}

INSTANTIATE_TEST_SUITE_P(
    Models, ReplicasOf,
    testing::Values(Loading{"q8_0", "families_llama/llama", [](LoadOptions& o) { o.kv = "q8_0"; }},
                    Loading{"windows", "families_gemma3/gemma3", [](LoadOptions&) {}},
                    Loading{"states", "families_recurrent/qwen3_5", [](LoadOptions&) {}},
                    Loading{"host_table", "families_gemma4/gemma3n",
                            [](LoadOptions& o) { o.layer_table_on_host = true; }},
                    Loading{"paged", "families_moe/mixtral",
                            [](LoadOptions& o) { o.expert_bytes = 200 << 10; }},  // two of four experts
                    Loading{"adapters", "adapters/llama",
                            [](LoadOptions& o) {
                              o.adapters = {{.path = GOLDEN_DIR "/adapters/llama/adapters/all_r8"}};
                            }}),
    [](const auto& made) { return std::string(made.param.name); });

// A prediction is a text, and this model has no tokenizer. Its greedy text repeats itself, so that drafts are found.
TEST(Replicas, DraftsDoNotChangeAnswersOnTwoDevices) {
  GenerateOptions options = sampled(64);
  options.sampling.temperature = 0;
  options.draft = "off";
  const std::vector<int32_t> prompt = {40, 7, 90, 11};
  const std::string llama = GOLDEN_DIR "/families_llama/llama";
  Model one = load(llama, "0"), two = load(llama, "0,0");
  const auto wanted = one.scheduler()->submit({.prompt = prompt, .options = options})->finish();
  ASSERT_TRUE(wanted) << wanted.error().message();
  options.draft = "lookup";
  options.draft_rows = 8;
  auto scheduler = two.scheduler();
  ASSERT_TRUE(scheduler);
  uint32_t accepted = 0;
  for (int round = 0; round < 8 && accepted < 16; ++round) {  // plans are made beside the first answers
    std::vector<Stream> streams;
    for (int i = 0; i < 4; ++i)
      streams.push_back(std::move(*scheduler->submit({.prompt = prompt, .options = options})));
    for (Stream& stream : streams) {
      const auto got = stream.finish();
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(got->tokens, wanted->tokens);
      accepted += got->timings.accepted_tokens;
    }
  }
  EXPECT_GE(accepted, 16u);
}

TEST(Replicas, PicturesAreSeenOnBothDevices) {
  const auto picture = Image::load(IMAGES_DIR "/images/b.png");
  ASSERT_TRUE(picture) << picture.error().message();
  const auto answers = [&](const char* device) {
    Model model = load(VISION_DIR "/gemma3", device, [](LoadOptions& o) { o.ctx_len = 256, o.chunk = 128; });
    auto scheduler = model.scheduler();
    const uint64_t before = submits_of_other(model);
    std::vector<Stream> streams;
    for (const char* question : {"what", "is", "this", "here"}) {
      Message message{
          .role = "user", .content = {}, .parts = {{.text = {}, .image = *picture}, {question, {}}}};
      auto stream = scheduler->submit({.prompt = std::vector{std::move(message)}, .options = sampled(6)});
      EXPECT_TRUE(stream) << stream.error().message();
      streams.push_back(std::move(*stream));
    }
    std::vector<std::vector<int32_t>> out = tokens_of(streams);
    EXPECT_EQ(submits_of_other(model) > before, std::string_view(device) == "0,0");
    return out;
  };
  EXPECT_EQ(answers("0,0"), answers("0"));
}

TEST(Replicas, EmbeddingsAreThoseOfOneDevice) {
  const auto vector_of = [](const char* device) {
    Model model =
        load(EMBEDDING_MODELS_DIR "/qwen3_embedding", device, [](LoadOptions& o) { o.sequences = 1; });
    const auto got = model.embed(std::vector<int32_t>{40, 7, 90, 11}, {});
    EXPECT_TRUE(got) << got.error().message();
    return got->values;
  };
  const std::vector<float> wanted = vector_of("0");
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(vector_of("0,0"), wanted);
}

TEST(Replicas, ALostDevicesAnswersGoOnOnTheOther) {
  constexpr uint32_t kTokens = 48;  // more than a device has queued when it is lost
  const std::vector<std::string> wanted = alone(kTokens);
  Model model = load(kStoryteller, "0,0");
  auto scheduler = model.scheduler();
  std::vector<Stream> streams = submit_all(*scheduler, kTokens);
  for (Stream& stream : streams) {
    while (stream.so_far().tokens.size() < 3) {
      const auto piece = stream.next();
      ASSERT_TRUE(piece && *piece);
    }
  }
  engine::Card& lost = *Model::Impl::of(model).others[0];
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
  Model model = load(kStoryteller, "0,0", [](LoadOptions& o) { o.sequences = 1; });
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
  Model one = load(kStoryteller, "0", [](LoadOptions& o) { o.sequences = 1; });
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
