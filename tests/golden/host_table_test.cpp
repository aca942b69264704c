// Embeddings of each layer on the host against the same models with the table on the device: the logits are equal bit
// for bit, and the tokens too, of one sequence and of several. The table of gemma3n is shorter than the vocabulary.
#include <gtest/gtest.h>

#include "engine/scheduler/scheduler.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

using formats::must;
using Tokens = std::vector<uint32_t>;

constexpr uint32_t kNew = 12;

class TableOnHost : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::string(GOLDEN_DIR "/families_gemma4/") + GetParam();
    checkpoint_ = open_golden(must(formats::open_file_set(folder_)));
    prompt_ = read_references(folder_).get<uint32_t>("prompt_b");
  }

  std::unique_ptr<model::DeviceModel> load(bool on_host, model::RunnerOptions options) {
    options.policy = must(kernels::make_policy("exact"));
    options.cache_format = kernels::CacheFormat::kF32;
    options.ctx_len = 128;
    options.block_len = 8;
    options.layer_table_on_host = on_host;
    auto runner = must(gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint_, std::move(options), {})));
    EXPECT_EQ(runner->has_host_table(), on_host);
    return runner;
  }

  std::vector<float> logits(model::DeviceModel& runner) {
    std::vector<float> all;
    for (size_t at = 0; at < prompt_.size(); at += runner.chunk()) {
      const auto part = std::span(prompt_).subspan(at, std::min<size_t>(runner.chunk(), prompt_.size() - at));
      const auto rows =
          must(gpu::run_to_completion(device(), runner.logits(static_cast<uint32_t>(at), part)));
      all.insert(all.end(), rows.logits.begin(), rows.logits.end());
    }
    return all;
  }

  std::vector<int32_t> tokens(model::DeviceModel& runner, float temperature) {
    GenerateOptions options{.max_tokens = kNew};
    options.sampling.temperature = temperature;
    return one_answer(runner, prompt_, options).tokens;
  }

  // Answers of four prompts over three slots, so that steps have pieces of one and rows of others.
  std::vector<Tokens> answers(model::DeviceModel& runner) {
    auto scheduler =
        must(engine::Scheduler::create(*runner.sequences(), {.vocab_size = runner.config().vocab_size}));
    std::vector<std::shared_ptr<engine::Stream>> streams;
    for (const uint32_t length : {21u, 3u, 17u, 9u}) {
      engine::Request request;
      request.tokens = Tokens(prompt_.begin(), prompt_.begin() + length);
      request.settings.max_tokens = kNew - length / 4;
      streams.push_back(must(scheduler->submit(std::move(request))));
    }
    while (must(gpu::run_to_completion(device(), scheduler->turn()))) {
    }
    std::vector<Tokens> out;
    for (const auto& stream : streams) out.push_back(stream->take());
    return out;
  }

  std::string folder_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  Tokens prompt_;
};

TEST_P(TableOnHost, LogitsAreThoseOfTheTableOnTheDevice) {
  const auto device_table = load(false, {.chunk = 7, .all_logits = true});
  const auto host_table = load(true, {.chunk = 7, .all_logits = true});
  EXPECT_EQ(logits(*host_table), logits(*device_table));
  EXPECT_LT(host_table->memory().weight_bytes, device_table->memory().weight_bytes);
}

TEST_P(TableOnHost, TokensAreThoseOfTheTableOnTheDevice) {
  const auto device_table = load(false, {.chunk = 5}), host_table = load(true, {.chunk = 5});
  EXPECT_EQ(host_table->runner()->max_tickets(), 1u);
  const gpu::Counters before = device().counters();
  for (const float temperature : {0.0f, 0.8f}) {
    EXPECT_EQ(tokens(*host_table, temperature), tokens(*device_table, temperature));
  }
  const gpu::Counters& after = device().counters();
  EXPECT_EQ(after.buffers_created, before.buffers_created);
  EXPECT_EQ(after.bind_groups_created, before.bind_groups_created);
  record_shown(host_table->config().family, {.lane = "exact", .feature = "table_on_host"});
}

TEST_P(TableOnHost, SeveralSequencesSayWhatTheySayWithTheTableOnTheDevice) {
  const auto device_table = load(false, {.chunk = 9, .max_sequences = 3});
  const auto host_table = load(true, {.chunk = 9, .max_sequences = 3});
  EXPECT_EQ(host_table->sequences()->max_steps(), 1u);
  const std::vector<Tokens> wanted = answers(*device_table);
  EXPECT_EQ(answers(*host_table), wanted);
  EXPECT_EQ(wanted[1].size(), kNew);
}

TEST_P(TableOnHost, DraftsDoNotChangeTheAnswer) {
  const auto device_table = load(false, {.chunk = 9}), host_table = load(true, {.chunk = 9});
  for (const float temperature : {0.0f, 0.8f}) {
    GenerateOptions options{.max_tokens = 40};
    options.sampling.temperature = temperature;
    const Generation wanted = one_answer(*device_table, prompt_, options);
    const Generation got = answer_with_drafts(*host_table, prompt_, options, wanted.tokens);
    EXPECT_EQ(got.tokens, wanted.tokens);
    EXPECT_GT(got.timings.accepted_tokens, 15u);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TableOnHost, testing::Values("gemma3n", "gemma4"),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace doppler
