// Models in parts through the public API: what the user is told, features that are left out or refused, a lost device.
#include <gtest/gtest.h>

#include <string>

#include "doppler/scheduler.h"
#include "engine/api_impl.h"
#include "engine/device_plan_native.h"
#include "engine/model_options.h"
#include "formats/file_set_native.h"
#include "gpu/device_native.h"
#include "model/split_plan.h"

namespace doppler {
namespace {

constexpr const char* kModel = DOPPLER_SOURCE_DIR "/models/storyteller.gguf";
constexpr const char* kPrompts[] = {"The fox and the crow", "In the spring of the year",
                                    "There was once a king who had", "An old woman lived with her son"};

LoadOptions options_of(const char* devices, uint32_t sequences) {
  LoadOptions options;
  options.device = devices;
  if (options.device.contains(',')) options.split_mode = "layer";
  options.lane = "exact";
  options.ctx_len = 128;
  options.chunk = 32;
  options.sequences = sequences;
  options.tuned = false;
  return options;
}

Model load(const char* devices, uint32_t sequences) {
  auto model = Model::load(kModel, options_of(devices, sequences));
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
  return options;
}

std::vector<std::string> together(Model& model, uint32_t tokens) {
  auto scheduler = model.scheduler();
  std::vector<Stream> streams;
  for (const char* prompt : kPrompts) {
    auto stream = scheduler->submit({.prompt = prompt, .options = sampled(tokens)});
    EXPECT_TRUE(stream) << stream.error().message();
    streams.push_back(std::move(*stream));
  }
  std::vector<std::string> texts;
  for (Stream& stream : streams) {
    const auto answer = stream.finish();
    EXPECT_TRUE(answer) << answer.error().message();
    texts.push_back(answer ? answer->text : "");
  }
  EXPECT_EQ(scheduler->load().objects_created, 0u);
  return texts;
}

TEST(SplitModel, AnswersAsOneDeviceDoesAndSaysWhereLayersLie) {
  Model one = load("0", 1), model = load("0,0,0", 1);
  const ModelInfo& info = model.info();
  ASSERT_EQ(info.parts.size(), 3u);
  uint32_t layers = 0;
  uint64_t cache = 0;
  for (const ModelPart& part : info.parts) {
    EXPECT_EQ(part.first_layer, layers);
    EXPECT_GT(part.n_layers, 0u);
    layers += part.n_layers;
    cache += part.cache_bytes;
  }
  EXPECT_EQ(layers, info.n_layers);
  EXPECT_EQ(info.cache_bytes, cache);
  EXPECT_EQ(info.cache_bytes, one.info().cache_bytes);
  EXPECT_TRUE(one.info().parts.empty());
  Session first = one.new_session(), second = model.new_session();
  for (const char* prompt : kPrompts) {
    const auto wanted = first.generate(prompt, sampled(12));
    const auto got = second.generate(prompt, sampled(12));
    ASSERT_TRUE(wanted && got) << got.error().message();
    EXPECT_EQ(got->text, wanted->text);
    EXPECT_EQ(got->timings.evaluated_tokens, wanted->timings.evaluated_tokens);
  }
  EXPECT_EQ(model.counters().objects_created, 0u);
}

TEST(SplitModel, SeveralSequencesAnswerAsOnOneDevice) {
  Model one = load("0", 4), model = load("0,0", 4);
  EXPECT_EQ(together(model, 16), together(one, 16));
}

TEST(SplitModel, ALostDeviceEndsInAnAnswerThatGoesOn) {
  Model one = load("0", 1), model = load("0,0", 1);
  const std::string wanted = one.new_session().generate(kPrompts[0], sampled(24))->text;
  Session session = model.new_session();
  ASSERT_TRUE(session.start(kPrompts[0], sampled(24)));
  std::string text;
  for (int i = 0; i < 4; ++i) {
    const auto piece = session.next();
    ASSERT_TRUE(piece && *piece);
    text += **piece;
  }
  static_cast<gpu::NativeDevice&>(*Model::Impl::of(model).device).lose_for_test();
  while (true) {
    const auto piece = session.next();
    ASSERT_TRUE(piece) << piece.error().message();
    if (!*piece) break;
    text += **piece;
  }
  EXPECT_EQ(text, wanted);
  EXPECT_EQ(Model::Impl::of(model).reloads, 1u);
}

TEST(SplitModel, WhatPartsDoNotHaveIsRefusedInOneSentence) {
  const auto refused = [](const auto& change) {
    LoadOptions options = options_of("0,0", 1);
    change(options);
    const auto model = Model::load(kModel, options);
    return model ? std::string() : model.error().sentence();
  };
  EXPECT_NE(refused([](LoadOptions& o) { o.expert_bytes = 1; }).find("--expert-memory"), std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) { o.draft = "next"; }).find("--draft next"), std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) { o.adapter_slots = 1; }).find("--lora"), std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) { o.mmproj = "a"; }).find("--mmproj"), std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) { o.split_mode = "row"; }).find("auto, layer and none"),
            std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) { o.device = "0"; }).find("one is given"), std::string::npos);
  EXPECT_NE(refused([](LoadOptions& o) {
              o.sequences = 2;
              o.cache_host_bytes = 1;
            }).find("--cache-host"),
            std::string::npos);
}

TEST(SplitModel, LayersGoWhereThereIsRoom) {
  using Ranges = std::vector<formats::LayerRange>;
  const std::vector<uint64_t> equal(8, 10), heavy = {30, 10, 10, 10};
  const auto deal = [](const std::vector<uint64_t>& layers, std::vector<uint64_t> rooms) {
    return model::deal_layers(layers, rooms);
  };
  EXPECT_EQ(deal(equal, {100, 100}), (Ranges{{0, 4}, {4, 8}}));
  EXPECT_EQ(deal(equal, {100, 300}), (Ranges{{0, 2}, {2, 8}}));
  EXPECT_EQ(deal(equal, {100, 100, 100, 100}), (Ranges{{0, 2}, {2, 4}, {4, 6}, {6, 8}}));
  EXPECT_EQ(deal(heavy, {100, 100}), (Ranges{{0, 1}, {1, 4}}));
  EXPECT_EQ(deal({1, 1}, {1, 1000}), (Ranges{{0, 1}, {1, 2}}));
}

// A card with room for the model has all layers. Two smaller cards share the layers.
TEST(SplitModel, OnlyAModelThatDoesNotFitIsSplitByItself) {
  auto opening = formats::open_checkpoint(std::move(*formats::open_file_set(kModel)));
  opening.start();
  const auto checkpoint = opening.take();
  ASSERT_TRUE(checkpoint);
  gpu::Caps caps;
  caps.memory_bytes = 4ull << 30;
  caps.max_buffer_bytes = caps.max_binding_bytes = 1ull << 30;
  LoadOptions options = options_of("0,0", 1);
  options.split_mode = "auto";
  const auto plan = [&](uint64_t memory) {
    gpu::Caps small = caps;
    small.memory_bytes = memory;
    const gpu::Caps* const both[] = {&small, &small};
    return engine::plan_devices(**checkpoint, options, both);
  };
  const auto whole = plan(4ull << 30);
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_FALSE(*whole);
  const gpu::Caps* const one[] = {&caps};
  const auto bytes =
      model::plan_split(**checkpoint, *engine::runner_options(options), one)->shares[0].memory.total();
  const auto parts = plan(bytes * 3 / 4);
  ASSERT_TRUE(parts) << parts.error().message();
  ASSERT_TRUE(*parts);
  EXPECT_EQ((*parts)->shares.size(), 2u);
  EXPECT_LT((*parts)->shares[0].memory.total(), bytes);
  const auto none = plan(bytes / 4);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("on device 1 of 2"), std::string::npos) << none.error().message();
}

}  // namespace
}  // namespace doppler
