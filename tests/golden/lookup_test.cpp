// Answers with the drafter lookup equal those without drafts, token by token: greedy and drawn, in each number of rows,
// mixed with plain steps, in layers with windows, and in texts that go on.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "one_answer.h"
#include "residues_guide.h"

namespace doppler {
namespace {

using Tokens = std::vector<uint32_t>;
using model::Drafting;

struct Model {
  std::unique_ptr<model::DeviceModel> runner;
  Tokens prompt, cached, predicted;
  bool is_guided = false;

  // chunk: the rows of a prompt's chunk, and the most rows of a step.
  explicit Model(const std::string& name, uint32_t chunk = 9, const char* lane = "exact",
                 uint32_t ctx_len = 256) {
    const std::string folder = golden_dir() + "/" + name;
    auto files = formats::open_file_set(folder);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto loaded = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint,
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
  // rows: the rows of each step. 0: as many as pay.
  Generation answer(const Tokens& text, Drafting drafting, uint32_t rows, GenerateOptions options) {
    options.draft_rows = rows;
    return one_answer(*runner, text, std::move(options), cached, drafting, [&](engine::Request& request) {
      request.settings.prediction = predicted;
      request.settings.masked = is_guided;
      if (is_guided) request.guide = std::make_shared<Residues>(runner->config().vocab_size);
    });
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

// Edits a text in some places.
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

// Each row looks back on the text that it would have without drafts.
TEST_P(Lookup, SamplersLookBackOnTheSameText) {
  Model model(GetParam());
  ASSERT_TRUE(model.runner);
  const std::pair<const char*, void (*)(GenerateOptions&)> cases[] = {
      {"penalties",
       [](GenerateOptions& o) {
         o.sampling.repeat_penalty = 1.3f;
         o.sampling.presence_penalty = 0.2f;
         o.sampling.frequency_penalty = 0.1f;
       }},
      {"dry", [](GenerateOptions& o) { o.sampling.dry_multiplier = 0.8f; }},
      {"xtc", [](GenerateOptions& o) { o.sampling.xtc_probability = 0.3f; }},
      {"dynamic temperature", [](GenerateOptions& o) { o.sampling.dynatemp_range = 0.4f; }},
      {"log-probabilities",
       [](GenerateOptions& o) {
         o.logprobs = true;
         o.top_logprobs = 3;
       }},
      {"biases", [](GenerateOptions& o) { o.sampling.logit_bias = {{5, 2.0f}, {7, -3.0f}}; }},
  };
  for (const auto& [name, set] : cases) {
    SCOPED_TRACE(name);
    GenerateOptions options = drawn(50, 3);
    set(options);
    const Generation wanted = model.fresh(Drafting::kOff, 0, options);
    model.predicted = nearly(wanted.tokens);
    const Generation got = model.fresh(Drafting::kLookup, 8, options);
    EXPECT_EQ(got.tokens, wanted.tokens);
    EXPECT_GT(got.timings.accepted_tokens, 20u);
    ASSERT_EQ(got.logprobs.size(), wanted.logprobs.size());
    for (size_t i = 0; i < got.logprobs.size(); ++i) {
      EXPECT_NEAR(got.logprobs[i].logprob, wanted.logprobs[i].logprob, 1e-4) << i;
      ASSERT_EQ(got.logprobs[i].top.size(), wanted.logprobs[i].top.size());
      EXPECT_EQ(got.logprobs[i].top[0].first, wanted.logprobs[i].top[0].first);
    }
  }
}

// Each row has the mask that it would have without drafts.
TEST_P(Lookup, GuidesSeeTheSameText) {
  Model model(GetParam());
  ASSERT_TRUE(model.runner);
  model.is_guided = true;
  for (const GenerateOptions& options : {greedy(40), drawn(40, 6)}) {
    const Generation wanted = model.fresh(Drafting::kOff, 0, options);
    model.predicted = nearly(wanted.tokens);
    const Generation got = model.fresh(Drafting::kLookup, 8, options);
    EXPECT_EQ(got.tokens, wanted.tokens);
    EXPECT_GT(got.timings.accepted_tokens, 15u);
  }
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

// If the next-token layer was loaded, recurrent states are kept after two rows. Lookup then has two rows too.
TEST(LookupOfStates, AnswersAreTheSame) {
  Model model("families_next/qwen3_5_mtp_agreeing");
  ASSERT_TRUE(model.runner);
  for (const GenerateOptions& options : {greedy(40), drawn(40, 1)}) {
    const Generation wanted = model.fresh(Drafting::kOff, 0, options);
    model.predicted = nearly(wanted.tokens);
    const Generation got = model.fresh(Drafting::kLookup, 8, options);
    EXPECT_EQ(got.tokens, wanted.tokens);
    EXPECT_GT(got.timings.accepted_tokens, 8u);
    EXPECT_EQ(got.timings.drafter, "lookup");
    // The text goes on with the layer, after steps that another drafter drafted for.
    Tokens longer = model.prompt;
    longer.insert(longer.end(), got.tokens.begin(), got.tokens.end());
    longer.insert(longer.end(), {3, 4});
    const Generation with_layer = model.answer(longer, Drafting::kNext, 2, greedy(16));
    model.cached.clear();
    EXPECT_EQ(with_layer.tokens, model.answer(longer, Drafting::kOff, 0, greedy(16)).tokens);
  }
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
