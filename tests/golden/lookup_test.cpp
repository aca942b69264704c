// Answers with the drafter lookup are those without drafts, token by token: greedy and drawn, in each number of rows,
// mixed with plain steps, where layers have windows, and where texts go on.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/plan_runner.h"
#include "one_answer.h"

namespace doppler {
namespace {

using Tokens = std::vector<uint32_t>;
using model::Drafting;

struct Model {
  std::unique_ptr<model::PlanRunner> runner;
  Tokens prompt, cached, predicted;

  // chunk: of a prompt, and the most rows that a step has.
  explicit Model(const std::string& name, uint32_t chunk = 9, const char* lane = "exact",
                 uint32_t ctx_len = 256) {
    const std::string folder = golden_dir() + "/" + name;
    auto files = formats::open_file_set(folder);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto loaded =
        gpu::run_to_completion(device(), model::PlanRunner::load(device(), *checkpoint,
                                                                 {.policy = *kernels::make_policy(lane),
                                                                  .ctx_len = ctx_len,
                                                                  .chunk = chunk,
                                                                  .cache_format = kernels::CacheFormat::kF32},
                                                                 {}));
    EXPECT_TRUE(loaded) << loaded.error().message();
    if (loaded) runner = std::move(*loaded);
    const Tokens some = read_references(folder).get<uint32_t>("prompt_a");
    for (int i = 0; i < 2; ++i) prompt.insert(prompt.end(), some.begin(), some.end());
  }
  // rows: of each step; 0: as many as pay.
  Generation answer(const Tokens& text, Drafting drafting, uint32_t rows, GenerateOptions options) {
    options.draft_rows = rows;
    return one_answer(*runner, text, std::move(options), cached, drafting, predicted);
  }
  Generation fresh(Drafting drafting, uint32_t rows, GenerateOptions options) {
    cached.clear();
    return answer(prompt, drafting, rows, std::move(options));
  }
};

GenerateOptions greedy(uint32_t tokens) {
  GenerateOptions options{.max_tokens = tokens};
  options.sampling.temperature = 0;
  return options;
}

GenerateOptions drawn(uint32_t tokens, uint64_t seed) {
  GenerateOptions options{.max_tokens = tokens};
  options.sampling.temperature = 0.6f;
  options.sampling.top_k = 3;
  options.sampling.seed = seed;
  return options;
}

// A text that was edited in some places.
Tokens nearly(const std::vector<int32_t>& tokens) {
  Tokens out(tokens.begin(), tokens.end());
  for (size_t i = 11; i < out.size(); i += 12) out[i] = (out[i] + 1) % 50;
  return out;
}

class Lookup : public testing::TestWithParam<const char*> {
 protected:
  uint32_t accepted_ = 0;
};

TEST_P(Lookup, AnswersAreTheSame) {
  Model model(GetParam());
  ASSERT_TRUE(model.runner);
  for (const GenerateOptions& options : {greedy(60), drawn(60, 1), drawn(60, 2)}) {
    const Generation wanted = model.fresh(Drafting::kOff, 0, options);
    EXPECT_EQ(wanted.timings.drafted_tokens, 0u);
    model.predicted = nearly(wanted.tokens);
    for (const uint32_t rows : {2u, 4u, 8u, 0u}) {
      const Generation got = model.fresh(Drafting::kLookup, rows, options);
      EXPECT_EQ(got.tokens, wanted.tokens) << rows << " rows";
      if (rows != 0) accepted_ += got.timings.accepted_tokens;
    }
  }
  EXPECT_GT(accepted_, 200u);  // of 9 answers of 60 tokens
}

// A text goes on after steps with drafts, and ends with the context.
TEST_P(Lookup, TextsGoOnAndEnd) {
  Model model(GetParam(), 9, "exact", 96);
  ASSERT_TRUE(model.runner);
  const Generation first = model.fresh(Drafting::kLookup, 8, greedy(21));
  Tokens longer = model.prompt;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.insert(longer.end(), {3, 4});
  const Generation went_on = model.answer(longer, Drafting::kLookup, 8, greedy(200));
  EXPECT_EQ(went_on.stop, StopReason::kContextFull);
  model.cached.clear();
  const Generation wanted = model.answer(longer, Drafting::kOff, 0, greedy(200));
  EXPECT_EQ(went_on.tokens, wanted.tokens);
  EXPECT_EQ(went_on.timings.cached_tokens, model.prompt.size() + 20);
}

INSTANTIATE_TEST_SUITE_P(Models, Lookup,
                         testing::Values("families_llama/llama", "families_qwen3/qwen3",
                                         "families_gemma3/gemma3", "families_moe/qwen3_moe"),
                         [](const auto& of) {
                           std::string name = of.param;
                           return name.substr(name.find('/') + 1);
                         });

}  // namespace
}  // namespace doppler
