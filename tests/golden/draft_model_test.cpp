// A draft model beside a model of the same vocabulary: the answer is the model's own, and many of the drafts are right.
#include "engine/draft_model.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "golden_cases.h"
#include "golden_helpers.h"
#include "one_answer.h"

namespace doppler {
namespace {

using Tokens = std::vector<uint32_t>;
using model::Drafting;

std::unique_ptr<model::DeviceModel> load(const std::string& folder) {
  auto files = formats::open_file_set(folder);
  EXPECT_TRUE(files) << files.error().message();
  const auto checkpoint = open_golden(std::move(*files));
  auto loaded =
      gpu::run_to_completion(device(), model::DeviceModel::load(device(), *checkpoint,
                                                                {.policy = *kernels::make_policy("exact"),
                                                                 .ctx_len = 192,
                                                                 .chunk = 32,
                                                                 .cache_format = kernels::CacheFormat::kF32},
                                                                {}));
  EXPECT_TRUE(loaded) << loaded.error().message();
  return loaded ? std::move(*loaded) : nullptr;
}

std::string pair_dir() { return golden_dir() + "/drafts/pair"; }

TEST(DraftModel, AnswersAreTheModelsOwn) {
  const References refs = read_references(pair_dir());
  const auto target = load(pair_dir() + "/target"), small = load(pair_dir() + "/draft");
  ASSERT_TRUE(target && small);
  engine::DraftModel drafter(*small->runner());
  for (const char* name : {"p0", "p1", "p2"}) {
    const Tokens prompt = refs.get<uint32_t>(name + std::string(".prompt"));
    const Tokens wanted = refs.get<uint32_t>(name + std::string(".tokens"));
    for (const uint32_t rows : {2u, 8u}) {
      GenerateOptions options{.max_tokens = static_cast<uint32_t>(wanted.size()), .ignore_eos = true};
      options.sampling.temperature = 0;
      options.draft_rows = rows;
      Tokens held;
      const Generation got = one_answer(*target, prompt, options, held, Drafting::kModel, {}, &drafter);
      EXPECT_TRUE(std::ranges::equal(got.tokens, wanted)) << name << ", " << rows;
      // Agreement is 0.53 to 0.77: a wrong drafter's would be near 0.01.
      EXPECT_GT(got.timings.accepted_tokens, wanted.size() / 3);
    }
  }
}

TEST(DraftModel, DrawsWhatTheModelAloneDraws) {
  const References refs = read_references(pair_dir());
  const auto target = load(pair_dir() + "/target"), small = load(pair_dir() + "/draft");
  ASSERT_TRUE(target && small);
  engine::DraftModel drafter(*small->runner());
  const Tokens prompt = refs.get<uint32_t>("p1.prompt");
  for (const uint64_t seed : {1u, 2u}) {
    GenerateOptions options{.max_tokens = 48, .ignore_eos = true};
    options.sampling.temperature = 0.7f;
    options.sampling.repeat_penalty = 1.1f;
    options.sampling.seed = seed;
    Tokens held;
    const Generation wanted = one_answer(*target, prompt, options, held);
    held.clear();
    options.draft_rows = 4;
    const Generation got = one_answer(*target, prompt, options, held, Drafting::kModel, {}, &drafter);
    EXPECT_EQ(got.tokens, wanted.tokens) << seed;
    EXPECT_GT(got.timings.accepted_tokens, 5u);
  }
}

}  // namespace
}  // namespace doppler
