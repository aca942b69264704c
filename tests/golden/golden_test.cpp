// Whole models against references: logits at every position, the residual stream after each layer, greedy
// continuation through the cache. Cases are folders of tests/data/families_*.tar.xz; a new case needs no line here.
// References are by Hugging Face transformers (float32, CPU); those of families_generated, with odd sizes, are in
// float64 by make_random_llama.py. Tolerances and their reasons: docs/design/testing.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "kernels/tuning.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

// Dawn's pipelines take minutes to compile in software. From these archives it takes only cases with kernels that no
// other case has; DOPPLER_GOLDEN_ALL=1 is for all.
constexpr std::string_view kSampledOnDawn[] = {"families_dense",   "families_gemma4", "families_hybrid",
                                               "families_mla",     "families_moe2",   "families_mamba",
                                               "families_nemotron"};
constexpr std::string_view kOnDawn[] = {"apertus",          "gemma2",           "gemma3n",          "gemma4",
                                        "hunyuan_v1_dense", "ministral3",       "mistral4",         "olmo3",
                                        "glm4_moe",         "granitemoehybrid", "nemotron_h_latent"};

bool is_sampled_out(const fs::path& folder) {
  const char* provider = std::getenv("DOPPLER_WEBGPU");
  if (!provider || std::string_view(provider) != "dawn" || takes_all_cases()) return false;
  const auto has = [](std::span<const std::string_view> names, const fs::path& path) {
    return std::ranges::find(names, path.filename().string()) != names.end();
  };
  return has(kSampledOnDawn, folder.parent_path()) && !has(kOnDawn, folder);
}

std::vector<std::string> cases() {
  std::vector<std::string> folders;
  for (const fs::path& folder : case_folders())
    if (!is_sampled_out(folder)) folders.push_back(folder.string());
  return folders;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<formats::Checkpoint> open() {
    auto files = formats::open_file_set(GetParam());
    EXPECT_TRUE(files) << files.error().message();
    return open_golden(std::move(*files));
  }

  std::unique_ptr<model::DeviceModel> load(const formats::Checkpoint& checkpoint,
                                           model::RunnerOptions options) {
    auto policy = kernels::make_policy(lane_);
    EXPECT_TRUE(policy);
    options.policy = *policy;
    options.policy.forced = forced_;
    options.policy.tuning = tuning_;
    for (const kernels::Lane lane : more_lanes_) options.policy.allow(lane);
    options.cache_format = cache_;
    auto runner = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), checkpoint, std::move(options), {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }

  References references() { return read_references(GetParam()); }

  std::vector<float> logits_in_chunks(const formats::Checkpoint& checkpoint, std::span<const uint32_t> prompt,
                                      uint32_t chunk) {
    const auto runner = load(checkpoint, {.ctx_len = 64, .chunk = chunk, .all_logits = true});
    if (runner) family_ = runner->config().family;
    std::vector<float> all;
    for (size_t at = 0; runner && at < prompt.size(); at += chunk) {
      const auto part = prompt.subspan(at, std::min<size_t>(chunk, prompt.size() - at));
      auto rows = gpu::run_to_completion(device(), runner->logits(static_cast<uint32_t>(at), part));
      EXPECT_TRUE(rows) << rows.error().message();
      if (!rows) break;
      all.insert(all.end(), rows->logits.begin(), rows->logits.end());
    }
    return all;
  }

  void expect_greedy();
  std::vector<int32_t> greedy_tokens(model::DeviceModel& runner) { return generate(runner, {}).tokens; }
  Generation generate(model::DeviceModel& runner, GenerateOptions options) {
    options.sampling.temperature = 0;
    options.max_tokens = 16;
    options.batch = 4;
    return one_answer(runner, references().get<uint32_t>("prompt_a"), std::move(options));
  }

  std::string lane_ = "exact";
  kernels::CacheFormat cache_ = kernels::CacheFormat::kF32;
  std::string family_;  // of the model that logits_in_chunks() loaded
  std::vector<kernels::Lane> more_lanes_;
  std::map<std::string, std::string> forced_;
  std::shared_ptr<kernels::TuningTable> tuning_;
};

TEST_P(Golden, LogitsAndHiddenMatch) {
  const auto checkpoint = open();
  const References refs = references();
  const uint32_t ctx_len = short_ctx_len(*checkpoint);
  const auto runner =
      load(*checkpoint, {.ctx_len = ctx_len, .chunk = ctx_len, .all_logits = true, .hidden = true});
  ASSERT_TRUE(runner);
  const auto prompt = refs.get<uint32_t>("prompt_a");
  auto rows = gpu::run_to_completion(device(), runner->logits(0, prompt));
  ASSERT_TRUE(rows) << rows.error().message();
  const auto wanted = refs.get<float>("logits_a");
  EXPECT_LT(relative_l2(rows->logits, wanted), kExactTolerance);
  const size_t vocab = runner->config().vocab_size;
  for (size_t row = 0; row < prompt.size(); ++row) {
    EXPECT_LT(relative_l2(std::span(rows->logits).subspan(row * vocab, vocab),
                          std::span(wanted).subspan(row * vocab, vocab)),
              kExactTolerance)
        << "position " << row;
  }
  const size_t hidden = runner->config().hidden_dim;
  const auto wanted_hidden = refs.get<float>("hidden_a_last");
  const size_t streams =
      wanted_hidden.size() / hidden / (runner->config().n_layers + 1);  // the first is computed
  for (size_t layer = 0; layer <= runner->config().n_layers; ++layer) {
    const size_t last = (layer * prompt.size() + prompt.size() - 1) * hidden;
    EXPECT_LT(relative_l2(std::span(rows->hidden).subspan(last, hidden),
                          std::span(wanted_hidden).subspan(layer * streams * hidden, hidden)),
              kExactTolerance)
        << "after layer " << layer;
  }
  record_shown(runner->config().family, {.worst = relative_l2(rows->logits, wanted)});
}

TEST_P(Golden, LongPromptInChunksMatches) {
  const auto checkpoint = open();
  const References refs = references();
  const auto prompt = refs.get<uint32_t>("prompt_b");
  const auto wanted = refs.get<float>("logits_b_last4");
  double worst = 0;
  for (const uint32_t chunk : {64u, 7u}) {  // one pass; pieces that do not divide the prompt
    const std::vector<float> all = logits_in_chunks(*checkpoint, prompt, chunk);
    ASSERT_GE(all.size(), wanted.size());
    const double error = relative_l2(std::span(all).last(wanted.size()), wanted);
    EXPECT_LT(error, kExactTolerance) << "chunk " << chunk;
    worst = std::max(worst, error);
    record_shown(family_, {.feature = "prompt_pieces", .worst = worst});
  }
}

void Golden::expect_greedy() {
  const auto checkpoint = open();
  const auto runner = load(*checkpoint, {.ctx_len = short_ctx_len(*checkpoint), .chunk = 5});
  ASSERT_TRUE(runner);
  EXPECT_EQ(greedy_tokens(*runner), references().get<int32_t>("greedy_tokens"));
  record_shown(runner->config().family, {.feature = "decode"});
}

// Weights in tiles, in f32 arithmetic: the head leaves the best of each tile, and a step's end and the next one's
// beginning are one dispatch.
class TileGolden : public Golden {
 protected:
  void force_tiles() {
    lane_ = "dp4a";  // and portable: no f16 arithmetic
    for (const char* format : {"tile_f16", "tile_bf16"}) {
      forced_[std::string("matvec.") + format] = std::string("matvec.") + format + ".tile";
    }
  }
};

TEST_P(TileGolden, FusedStepsChooseTheReferencesTokens) {
  if (!device().caps().dp4a) GTEST_SKIP() << "weights lie in tiles only for devices with dp4a";
  const auto checkpoint = open();
  force_tiles();
  const auto runner = load(*checkpoint, {.ctx_len = 64, .chunk = 5});
  ASSERT_TRUE(runner);
  EXPECT_TRUE(std::ranges::any_of(runner->choices(),
                                  [](const kernels::Choice& c) { return c.variant == "next.fused"; }));
  EXPECT_EQ(greedy_tokens(*runner), references().get<int32_t>("greedy_tokens"));
}

// Splits of 16 keys, so that the second one has some while the tokens are chosen.
TEST_P(TileGolden, ReducedSplitsChooseTheReferencesTokens) {
  const gpu::Caps& caps = device().caps();
  if (!caps.dp4a || !caps.subgroups) GTEST_SKIP() << "the device has no subgroups, or no weights in tiles";
  const auto checkpoint = open();
  force_tiles();
  more_lanes_ = {kernels::Lane::kSubgroups};
  const std::string variant = forced_["attention_decode"] = "attention_decode.rope.few_splits";
  tuning_ = std::make_shared<kernels::TuningTable>();
  tuning_->choices[{"attention_decode", "4 heads on 2, head_dim 32, f32 cache of 64"}] = {
      .variant = variant, .constants = {{"keys_per_split", 16}}};
  const auto runner = load(*checkpoint, {.ctx_len = 64, .chunk = 5});
  ASSERT_TRUE(runner);
  EXPECT_TRUE(std::ranges::any_of(runner->choices(), [&](const kernels::Choice& choice) {
    return choice.variant == variant &&
           std::ranges::any_of(choice.constants, [](const kernels::ChosenConstant& constant) {
             return constant.name == "keys_per_split" && constant.value == 16;
           });
  }));
  EXPECT_EQ(greedy_tokens(*runner), references().get<int32_t>("greedy_tokens"));
}

TEST_P(Golden, GreedyContinuationMatches) { expect_greedy(); }

// A kind of plan of its own, whatever the family.
class LogprobGolden : public Golden {};

TEST_P(LogprobGolden, LogprobsAreThoseOfTheReference) {
  const auto checkpoint = open();
  const auto runner = load(*checkpoint, {.ctx_len = 64, .chunk = 5});
  ASSERT_TRUE(runner);
  constexpr uint32_t kTop = 3;
  const Generation answer = generate(*runner, {.logprobs = true, .top_logprobs = kTop});
  const References refs = references();
  EXPECT_EQ(answer.tokens, refs.get<int32_t>("greedy_tokens"));
  ASSERT_EQ(answer.logprobs.size(), answer.tokens.size());
  const auto logits = refs.get<float>("greedy_logits");
  const size_t vocab = runner->config().vocab_size;
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    const auto row = std::span(logits).subspan(i * vocab, vocab);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    ASSERT_EQ(answer.logprobs[i].top.size(), kTop);
    for (const auto& [token, logprob] : answer.logprobs[i].top) {
      EXPECT_NEAR(logprob, static_cast<double>(row[static_cast<size_t>(token)]) - std::log(sum), 1e-3) << i;
    }
    EXPECT_EQ(answer.logprobs[i].top[0].first, answer.tokens[i]);
    EXPECT_EQ(answer.logprobs[i].top[0].second, answer.logprobs[i].logprob);
  }
}

// The rows of GPUs; a CPU device takes other rows of the table. Two families, since its pipelines take seconds to
// compile.
class GoldenOnGpus : public Golden {};

TEST_P(GoldenOnGpus, GreedyContinuationMatches) {
  if (!device().caps().subgroups) GTEST_SKIP() << "the device has no subgroups";
  forced_["attention_decode"] = "attention_decode.rope.split";
  expect_greedy();
}

// Prompts of at most 16 tokens, through the kernels that GPUs have for few rows.
TEST_P(GoldenOnGpus, SkinnyRowsMatch) {
  forced_["matmul_skinny.f32"] = "matmul_skinny.f32.once";
  forced_["attention_skinny"] =
      device().caps().subgroups ? "attention_skinny.split" : "attention_skinny.portable.split";
  expect_greedy();
}

// Rounding keys and values to blocks of bytes costs this model 1.00e-2 of the logits' norm in double precision.
class Q8CacheGolden : public Golden {};

TEST_P(Q8CacheGolden, LogitsStayClose) {
  constexpr double kQ8CacheTolerance = 1.2e-2;
  const auto checkpoint = open();
  const References refs = references();
  cache_ = kernels::CacheFormat::kQ8_0;
  const auto prompt = refs.get<uint32_t>("prompt_b");
  const auto wanted = refs.get<float>("logits_b_last4");
  // Read after a copy to f16, and, with subgroups, directly.
  for (const uint32_t chunk : {64u, 7u, 1u}) {
    const std::vector<float> all = logits_in_chunks(*checkpoint, prompt, chunk);
    ASSERT_GE(all.size(), wanted.size());
    const double error = relative_l2(std::span(all).last(wanted.size()), wanted);
    EXPECT_LT(error, kQ8CacheTolerance) << "chunk " << chunk;
    EXPECT_GT(error, kExactTolerance) << "chunk " << chunk << ": was the cache in bytes?";
  }
}

TEST_P(Q8CacheGolden, SavedSessionsGoOn) {
  const auto checkpoint = open();
  cache_ = kernels::CacheFormat::kQ8_0;
  const auto prompt = references().get<uint32_t>("prompt_a");
  const auto runner = load(*checkpoint, {.ctx_len = 64, .chunk = 16, .all_logits = true});
  ASSERT_TRUE(runner);
  const auto logits_of_last = [&] {
    auto rows = gpu::run_to_completion(
        device(), runner->logits(static_cast<uint32_t>(prompt.size()) - 1, std::span(prompt).last(1)));
    EXPECT_TRUE(rows) << rows.error().message();
    return rows ? rows->logits : std::vector<float>();
  };
  ASSERT_TRUE(
      gpu::run_to_completion(device(), runner->logits(0, std::span(prompt).first(prompt.size() - 1))));
  const std::vector<float> before = logits_of_last();
  const auto count = static_cast<uint32_t>(prompt.size());
  const auto saved = gpu::run_to_completion(device(), runner->cache().save(device(), count));
  ASSERT_TRUE(saved) << saved.error().message();
  std::vector<uint32_t> other(prompt.rbegin(), prompt.rend());
  ASSERT_TRUE(gpu::run_to_completion(device(), runner->logits(0, other)));
  EXPECT_NE(logits_of_last(), before);
  ASSERT_TRUE(gpu::run_to_completion(device(), runner->cache().restore(device(), *saved)));
  EXPECT_EQ(logits_of_last(), before);
}

TEST(Q8Cache, HeadsThatAreNotWholeBlocksAreRefused) {
  auto files = formats::open_file_set(golden_dir() + "/families_llama/llama_odd");
  ASSERT_TRUE(files);
  const auto checkpoint = open_golden(std::move(*files));
  const auto runner = gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), *checkpoint,
                                         {.ctx_len = 64, .cache_format = kernels::CacheFormat::kQ8_0}, {}));
  ASSERT_FALSE(runner);
  EXPECT_EQ(
      runner.error().sentence(),
      "A cache in q8_0 has blocks of 32 values, and heads of layer 0 have 18; allowed are f16 and f32.");
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = fs::relative(info.param, golden_dir()).string();
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Families, GoldenOnGpus,
                         testing::Values(golden_dir() + "/families_gemma3/gemma3",
                                         golden_dir() + "/families_llama/llama"),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Families, Q8CacheGolden, testing::Values(golden_dir() + "/families_llama/llama"),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Families, LogprobGolden, testing::Values(golden_dir() + "/families_llama/llama"),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Families, TileGolden,
                         testing::Values(golden_dir() + "/families_llama/llama/bf16",
                                         golden_dir() + "/families_gemma3/gemma3/bf16"),
                         case_name);

}  // namespace
}  // namespace doppler
