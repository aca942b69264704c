// Models with recurrent states where a text goes back, and among others: a state cannot be cut, so what was evaluated
// before must never show. Each answer must be that of a fresh start. Models: one with only short convolutions, one
// with gated delta nets.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "many_answers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

constexpr uint32_t kNew = 10;

using Tokens = std::vector<uint32_t>;

// A case of short convolutions and one of delta rules; with DOPPLER_GOLDEN_ALL=1 those of state spaces and mixtures
// too.
std::vector<std::string> cases() {
  std::vector<std::string> out = {"families_recurrent/lfm2", "families_recurrent/qwen3_5"};
  if (!takes_all_cases()) return out;
  for (const char* more :
       {"families_moe2/lfm2_moe", "families_moe2/qwen3_5_moe", "families_hybrid/qwen3_next",
        "families_mamba/granitemoehybrid", "families_nemotron/nemotron_h"}) {
    out.emplace_back(more);
  }
  return out;
}

class Recurrent : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = golden_dir() + "/" + GetParam();
    const References refs = read_references(folder_);
    a_ = refs.get<uint32_t>("prompt_a");
    b_ = refs.get<uint32_t>("prompt_b");
    b_.resize(20);
  }

  std::unique_ptr<model::DeviceModel> load(uint32_t max_sequences) {
    auto files = formats::open_file_set(folder_);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto runner =
        gpu::run_to_completion(device(), model::DeviceModel::load(device(), *checkpoint,
                                                                  {.policy = *kernels::make_policy("exact"),
                                                                   .ctx_len = 64,
                                                                   .chunk = 9,
                                                                   .cache_format = kernels::CacheFormat::kF32,
                                                                   .max_sequences = max_sequences,
                                                                   .block_len = 8},
                                                                  {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }

  struct Answer {
    Tokens tokens;
    uint32_t cached = 0;  // tokens of the prompt that were not evaluated
  };
  Answer answer(model::DeviceModel& runner, const Tokens& prompt, Tokens& cached_tokens) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = kNew;
    const Generation result = one_answer(runner, prompt, options, cached_tokens);
    return {Tokens(result.tokens.begin(), result.tokens.end()), result.timings.cached_tokens};
  }

  std::string folder_;
  Tokens a_, b_;
};

Tokens joined(Tokens text, const Tokens& more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

TEST_P(Recurrent, ATextThatGoesBackIsAnsweredAsAFreshOne) {
  const auto runner = load(0);
  ASSERT_TRUE(runner);
  Tokens none, cached;
  const Answer first = answer(*runner, a_, none);
  const Tokens longer = joined(joined(a_, first.tokens), {5, 6, 7});
  const Tokens other = joined(a_, {9, 9, 9});
  const Tokens cut(a_.begin(), a_.begin() + 5);
  Tokens fresh_longer, fresh_other, fresh_cut;
  const Answer wanted_longer = answer(*runner, longer, fresh_longer),
               wanted_other = answer(*runner, other, fresh_other),
               wanted_cut = answer(*runner, cut, fresh_cut);
  EXPECT_EQ(answer(*runner, a_, cached).tokens, first.tokens);
  const Answer went_on = answer(*runner, longer, cached);
  EXPECT_EQ(went_on.tokens, wanted_longer.tokens);
  EXPECT_EQ(went_on.cached, a_.size() + kNew - 1);  // where the states stood
  EXPECT_EQ(answer(*runner, a_, cached).tokens, first.tokens);
  const Answer branched = answer(*runner, other, cached);
  EXPECT_EQ(branched.tokens, wanted_other.tokens);
  EXPECT_EQ(branched.cached, a_.size());  // the checkpoint after the prompt
  EXPECT_EQ(answer(*runner, cut, cached).tokens, wanted_cut.tokens);
  EXPECT_EQ(answer(*runner, a_, cached).tokens, first.tokens);
}

TEST_P(Recurrent, ARestoredCacheHasItsStates) {
  const auto runner = load(0);
  ASSERT_TRUE(runner);
  Tokens cached, none;
  const Tokens text = joined(a_, answer(*runner, a_, cached).tokens);
  const uint32_t kept = runner->runner()->continues_from(static_cast<uint32_t>(cached.size()));
  EXPECT_EQ(kept, cached.size());
  const auto saved = gpu::run_to_completion(device(), runner->runner()->save(kept));
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(model::KvCache::saved_positions(*saved), kept);
  const Answer wanted = answer(*runner, joined(text, {3, 4}), none);
  const auto restored = gpu::run_to_completion(device(), runner->runner()->restore(kept, *saved));
  ASSERT_TRUE(restored) << restored.error().message();
  cached.assign(text.begin(), text.begin() + kept);
  const Answer went_on = answer(*runner, joined(text, {3, 4}), cached);
  EXPECT_EQ(went_on.tokens, wanted.tokens);
  EXPECT_EQ(went_on.cached, kept);
}

TEST_P(Recurrent, EachOfManySequencesIsAnsweredAsAlone) {
  const Tokens prompts[] = {a_, b_, a_, Tokens(b_.begin(), b_.begin() + 1), joined(a_, {7})};
  std::vector<Tokens> wanted;
  {
    const auto alone = load(0);
    ASSERT_TRUE(alone);
    for (const Tokens& prompt : prompts) {
      Tokens fresh;
      wanted.push_back(answer(*alone, prompt, fresh).tokens);
    }
  }
  const auto runner = load(3);
  ASSERT_TRUE(runner);
  auto scheduler =
      engine::Scheduler::create(*runner->sequences(), {.vocab_size = runner->config().vocab_size});
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  const auto streams = answer_together(**scheduler, prompts, kNew);
  ASSERT_EQ(streams.size(), std::size(prompts));
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(streams[i]->take(), wanted[i]) << "prompt " << i;
    EXPECT_EQ(streams[i]->timings().cached_tokens, 0u);
  }
}

// The states of a prefix come from a checkpoint on the device: those of a prompt asked again, of one that goes on, of
// two that begin alike, and of an answer's next turn.
TEST_P(Recurrent, PrefixesAreBegunBehindTheirStates) {
  const auto alone = load(0), runner = load(3);
  ASSERT_TRUE(alone && runner);
  const auto wanted = [&](const Tokens& prompt) {
    Tokens fresh;
    return answer(*alone, prompt, fresh).tokens;
  };
  auto scheduler = engine::Scheduler::create(*runner->sequences(),
                                             {.vocab_size = runner->config().vocab_size, .least_kept = 8});
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  const Tokens start(b_.begin(), b_.begin() + 17), next = joined(joined(start, wanted(start)), {5, 6, 7});
  struct Row {
    Tokens prompt;
    uint32_t cached;
  };
  const Row rows[] = {{start, 0}, {start, 16}, {joined(start, {7}), 16}, {next, 16}, {next, 24}};
  for (const Row& row : rows) {
    const auto streams = answer_together(**scheduler, std::span(&row.prompt, 1), kNew);
    ASSERT_EQ(streams.size(), 1u);
    EXPECT_EQ(streams[0]->take(), wanted(row.prompt));
    EXPECT_EQ(streams[0]->timings().cached_tokens, row.cached);
  }
  const Tokens other(b_.rbegin(), b_.rend());
  const Tokens together[] = {joined(other, {1, 2}), joined(other, {3, 4}), joined(other, {5})};
  const auto streams = answer_together(**scheduler, together, kNew);
  ASSERT_EQ(streams.size(), std::size(together));
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(streams[i]->take(), wanted(together[i])) << "prompt " << i;
    EXPECT_EQ(streams[i]->timings().cached_tokens, i == 0 ? 0u : 16u);
  }
  record_shown(runner->config().family, {.feature = "prefix_cache"});
}

INSTANTIATE_TEST_SUITE_P(Models, Recurrent, testing::ValuesIn(cases()));

}  // namespace
}  // namespace doppler
