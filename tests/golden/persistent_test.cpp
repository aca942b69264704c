// The lane persistent against its twin, the chain of dispatches, and against itself: a race between workgroups would
// show as runs that differ, and only sometimes.
// DOPPLER_REPEAT_SYNTHETIC=llama-3.2-1b:q4_k_m and DOPPLER_REPEAT_TOKENS=64 let it work on a GPU's scale.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "doppler/doppler.h"
#include "engine/api_impl.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"
#include "formats/synth/synthetic_model.h"

namespace doppler {
namespace {

constexpr uint32_t kRuns = 64, kRunsOfCpu = 24;
constexpr uint32_t kTokensOfCpu = 4;
const std::vector<int32_t> kPrompt = {1, 17, 300, 42, 5, 99, 7};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Result<Model> load(const std::string& lane) {
  LoadOptions options;
  options.lane = lane;
  options.ctx_len = 256;
  options.tuned = false;
  const std::string shape = environment("DOPPLER_REPEAT_SYNTHETIC");
  if (shape.empty()) return Model::load(DOPPLER_SOURCE_DIR "/models/storyteller.gguf", options);
  DP_TRY(std::unique_ptr<formats::SyntheticModel> made, formats::SyntheticModel::make(shape));
  return load_files(formats::synthetic_file_set(std::move(made)), options);
}

uint32_t token_count() {
  const std::string asked = environment("DOPPLER_REPEAT_TOKENS");
  return asked.empty() ? kTokensOfCpu : static_cast<uint32_t>(std::strtoul(asked.c_str(), nullptr, 10));
}

Result<std::vector<int32_t>> generate(Model& model, const std::vector<int32_t>& prompt, float temperature,
                                      uint32_t count) {
  GenerateOptions options;
  options.sampling = {.temperature = temperature, .top_k = 0, .top_p = 1, .seed = 11};
  options.max_tokens = count;
  options.ignore_eos = true;
  Session session = model.new_session();
  DP_TRY(const Generation generation, session.generate(prompt, options));
  return generation.tokens;
}

bool uses_the_lane(Model& model) {
  return std::ranges::count(Model::Impl::of(model).loaded->runner->choices(),
                            std::string("decode_layers.persistent"), &kernels::Choice::variant) > 0;
}

// Generates in the lane persistent only. A CPU may put the workgroups aside for longer than its driver lets a loop
// wait: the answer then goes on by the chain, whose sums are rounded differently, so that another model is loaded and
// the run made again. A GPU never has to.
class LaneRuns {
 public:
  Result<std::vector<int32_t>> tokens(const std::vector<int32_t>& prompt, float temperature, uint32_t count) {
    for (;;) {
      if (!model_) {
        DP_TRY(Model made, load("persistent"));
        model_.emplace(std::move(made));
      }
      auto made = generate(*model_, prompt, temperature, count);
      if (!made || uses_the_lane(*model_)) return made;
      if (++left_ > (is_cpu() ? kMostOnCpu : 0)) {
        return fail(ErrorKind::kInternal, "The lane was left %u times.", left_);
      }
      model_.reset();
    }
  }
  Model& model() { return *model_; }
  bool is_cpu() { return Model::Impl::of(*model_).device->caps().type == gpu::AdapterType::kCpu; }
  ~LaneRuns() {
    if (left_ > 0) std::printf("The lane was left %u times, and those runs were made again.\n", left_);
  }

 private:
  static constexpr uint32_t kMostOnCpu = 60;  // in a test; chosen, not measured
  std::optional<Model> model_;
  uint32_t left_ = 0;
};

// In pieces, each after the chain's tokens before it: a piece is short enough for a busy CPU.
TEST(Persistent, ChoosesTheTokensOfTheChain) {
  constexpr size_t kTokens = 40, kPiece = 8;
  if (!environment("DOPPLER_REPEAT_SYNTHETIC").empty()) {
    GTEST_SKIP() << "random weights have near ties, which the two decide differently";
  }
  auto chain = load("fast");
  ASSERT_TRUE(chain) << chain.error().message();
  const auto wanted = generate(*chain, kPrompt, 0, kTokens);
  ASSERT_TRUE(wanted) << wanted.error().message();
  LaneRuns persistent;
  std::vector<int32_t> prompt = kPrompt;
  for (size_t at = 0; at < kTokens; at += kPiece) {
    const std::vector<int32_t> piece(wanted->begin() + at, wanted->begin() + at + kPiece);
    const auto got = persistent.tokens(prompt, 0, kPiece);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(*got, piece) << "at token " << at;
    prompt.insert(prompt.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(persistent.model().counters().objects_created, 0u);
}

// Grammars, log-probabilities, penalties and drafts, in the first tokens of an answer. A saved text goes on too.
TEST(Persistent, WhatRequestsAskForIsThatOfTheChain) {
  if (!environment("DOPPLER_REPEAT_SYNTHETIC").empty()) GTEST_SKIP() << "as above";
  const std::string path = testing::TempDir() + "doppler_persistent." + std::to_string(process_id());
  constexpr uint32_t kTokens = 6;
  std::vector<GenerateOptions> asked(4);
  for (GenerateOptions& options : asked) {
    options.max_tokens = kTokens;
    options.ignore_eos = true;
    options.sampling.temperature = 0;
  }
  asked[0].grammar = {GrammarKind::kRegex, "(yes|no), (fox|crow){4,9}", {}};
  asked[1].logprobs = true;
  asked[2].sampling = {.temperature = 1, .top_k = 1, .frequency_penalty = 0.8f, .dry_multiplier = 2};
  asked[3].draft = "lookup";
  asked[3].draft_rows = 4;
  auto chain = load("fast");
  ASSERT_TRUE(chain) << chain.error().message();
  for (const GenerateOptions& options : asked) {
    Session whole = chain->new_session();
    const auto wanted = whole.generate(kPrompt, options);
    ASSERT_TRUE(wanted) << wanted.error().message();
    ASSERT_TRUE(whole.save(path));
    const auto later = whole.generate(kPrompt, options);
    ASSERT_TRUE(later) << later.error().message();
    bool is_shown = false;
    for (uint32_t i = 0; i < 20 && !is_shown; ++i) {  // a CPU may leave the lane
      auto model = load("persistent");
      ASSERT_TRUE(model) << model.error().message();
      Session session = model->new_session();
      const auto got = session.generate(kPrompt, options);
      ASSERT_TRUE(got) << got.error().message();
      const auto went_on = session.generate(kPrompt, options);
      ASSERT_TRUE(went_on) << went_on.error().message();
      ASSERT_TRUE(session.restore(path));
      const auto restored = session.generate(kPrompt, options);
      ASSERT_TRUE(restored) << restored.error().message();
      if (!uses_the_lane(*model)) continue;
      is_shown = true;
      EXPECT_EQ(got->tokens, wanted->tokens);
      EXPECT_EQ(went_on->tokens, later->tokens);
      EXPECT_GT(went_on->timings.cached_tokens, kTokens);
      EXPECT_EQ(restored->tokens, later->tokens);
      EXPECT_EQ(went_on->timings.drafted_tokens > 0, !options.draft.empty());
      ASSERT_EQ(got->logprobs.size(), wanted->logprobs.size());
      for (size_t at = 0; at < got->logprobs.size(); ++at)
        EXPECT_NEAR(got->logprobs[at].logprob, wanted->logprobs[at].logprob, 0.05);
    }
    EXPECT_TRUE(is_shown) << "the lane was left each time";
  }
  std::filesystem::remove(path);
}

TEST(Persistent, RunsAreIdentical) {
  LaneRuns persistent;
  const auto first = persistent.tokens(kPrompt, 1, token_count());
  ASSERT_TRUE(first) << first.error().message();
  const uint32_t runs = persistent.is_cpu() ? kRunsOfCpu : kRuns;
  uint32_t different = 0;
  for (uint32_t run = 1; run < runs; ++run) {
    const auto again = persistent.tokens(kPrompt, 1, token_count());
    ASSERT_TRUE(again) << again.error().message();
    if (*again != *first) ++different;
  }
  EXPECT_EQ(different, 0u) << "of " << runs << " runs";
}

// The lane fast uses what tune found to be faster, for that model only.
TEST(Persistent, IsUsedWhereTuningFoundItFaster) {
  const std::string folder = testing::TempDir() + "doppler_persistent_" + std::to_string(process_id());
  auto plain = load("fast");
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_FALSE(uses_the_lane(*plain));
  const engine::LoadedModel& loaded = *Model::Impl::of(*plain).loaded;
  const kernels::TuningKey key =
      engine::tuning_key(Model::Impl::of(*plain).device->caps(), loaded.runner->options());
  const std::string own = engine::model_key(*loaded.checkpoint);
  for (const std::string& model : {own, std::string("0123456789abcdef")}) {
    kernels::TuningTable table;
    table.persistent = {model};
    ASSERT_TRUE(engine::save_tuning(folder, key, table));
    LoadOptions options;
    options.ctx_len = 256;
    options.cache_dir = folder;
    bool is_used = false;
    // On a CPU the workgroups may happen not to be co-resident.
    for (uint32_t i = 0; i < 20 && !is_used; ++i) {
      auto tuned = Model::load(DOPPLER_SOURCE_DIR "/models/storyteller.gguf", options);
      ASSERT_TRUE(tuned) << tuned.error().message();
      is_used = uses_the_lane(*tuned);
      if (model != own) break;
    }
    EXPECT_EQ(is_used, model == own);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace doppler
