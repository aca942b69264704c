// Models with a next-token layer: its logits against references, and answers that are the same with drafts and without.
// References: make_next_layers.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

using Tokens = std::vector<uint32_t>;
using model::Drafting;

constexpr const char* kAgreeing = "qwen3_5_mtp_agreeing";

std::string folder_of(const std::string& name) { return golden_dir() + "/families_next/" + name; }

Result<std::unique_ptr<model::DeviceModel>> load(const std::string& name, model::RunnerOptions options) {
  auto files = formats::open_file_set(folder_of(name));
  EXPECT_TRUE(files) << files.error().message();
  const auto checkpoint = open_golden(std::move(*files));
  return gpu::run_to_completion(device(),
                                model::DeviceModel::load(device(), *checkpoint, std::move(options), {}));
}

model::RunnerOptions options_of(Drafting drafting, const char* lane = "exact") {
  return {.policy = *kernels::make_policy(lane),
          .ctx_len = 128,
          .chunk = 9,
          .cache_format = kernels::CacheFormat::kF32,
          .drafting = drafting};
}

// A runner, and the text in its cache.
struct Session {
  Session(const std::string& name, model::RunnerOptions options) {
    auto loaded = load(name, std::move(options));
    EXPECT_TRUE(loaded) << loaded.error().message();
    if (loaded) runner = std::move(*loaded);
  }
  Generation answer(const Tokens& prompt, GenerateOptions options) {
    options.draft_rows = 2;
    return one_answer(*runner, prompt, std::move(options), cached, Drafting::kNext);
  }
  Generation greedy(const Tokens& prompt, uint32_t tokens) {
    GenerateOptions options{.max_tokens = tokens};
    options.sampling.temperature = 0;
    return answer(prompt, options);
  }

  std::unique_ptr<model::DeviceModel> runner;
  Tokens cached;
};

Tokens prompt_of(const std::string& name, const char* which = "prompt_a") {
  return read_references(folder_of(name)).get<uint32_t>(which);
}

Tokens joined(Tokens text, const Generation& answer, Tokens more) {
  text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

class NextLayer : public testing::TestWithParam<const char*> {};

TEST_P(NextLayer, LogitsAreThoseOfTheReference) {
  const References refs = read_references(folder_of(GetParam()));
  const Tokens tokens = refs.get<uint32_t>("tokens");
  model::RunnerOptions options = options_of(Drafting::kNext);
  options.chunk = static_cast<uint32_t>(tokens.size());
  options.all_logits = true;
  auto runner = load(GetParam(), options);
  ASSERT_TRUE(runner) << runner.error().message();
  auto rows = gpu::run_to_completion(device(), (*runner)->logits(0, tokens));
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_LT(relative_l2(rows->logits, refs.get<float>("logits")), kExactTolerance);
  const double worst = relative_l2(rows->next_logits, refs.get<float>("next_logits"));
  EXPECT_LT(worst, kExactTolerance);
  record_shown((*runner)->config().family, {.feature = "drafts", .worst = worst});
}

TEST_P(NextLayer, AnswersAreTheSameWithDrafts) {
  const Tokens prompt = prompt_of(GetParam());
  for (const char* lane : {"exact", "fast"}) {
    Session plain(GetParam(), options_of(Drafting::kOff, lane));
    Session drafting(GetParam(), options_of(Drafting::kNext, lane));
    ASSERT_TRUE(plain.runner && drafting.runner);
    const Generation wanted = plain.greedy(prompt, 16), got = drafting.greedy(prompt, 16);
    EXPECT_EQ(got.tokens, wanted.tokens) << lane;
    EXPECT_EQ(wanted.timings.drafted_tokens, 0u);
    EXPECT_GT(got.timings.drafted_tokens, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, NextLayer,
                         testing::Values("qwen3_5_mtp", "qwen3_next_mtp", "qwen3_5_moe_mtp", kAgreeing),
                         [](const auto& model) { return std::string(model.param); });

// As many drafts are right as the reference says: the layer's cache is right after the prompt, after drafts that were
// right and after drafts that were wrong.
TEST(Drafts, AreRightWhereTheReferencesAre) {
  const References refs = read_references(folder_of(kAgreeing));
  const Tokens wanted = refs.get<uint32_t>("greedy_tokens"), is_right = refs.get<uint32_t>("accepted");
  Session session(kAgreeing, options_of(Drafting::kNext));
  ASSERT_TRUE(session.runner);
  const auto count = static_cast<uint32_t>(wanted.size());
  const Generation got = session.greedy(refs.get<uint32_t>("prompt_a"), count);
  EXPECT_TRUE(std::ranges::equal(got.tokens, wanted));
  uint32_t drafted = 0, accepted = 0;
  for (uint32_t at = 0; at + 1 < count; ++drafted) {  // `at`: the token that a step begins with
    const bool stays = at + 2 < count && is_right[at] != 0;
    accepted += stays ? 1 : 0;
    at += stays ? 2 : 1;
  }
  EXPECT_EQ(got.timings.drafted_tokens, drafted);
  EXPECT_EQ(got.timings.accepted_tokens, accepted);
  EXPECT_GT(accepted, drafted / 2);
  EXPECT_LT(accepted, drafted);
}

TEST(Drafts, DrawWhatSingleStepsDraw) {
  const Tokens prompt = prompt_of(kAgreeing);
  Session plain(kAgreeing, options_of(Drafting::kOff)), drafting(kAgreeing, options_of(Drafting::kNext));
  ASSERT_TRUE(plain.runner && drafting.runner);
  for (const uint64_t seed : {1u, 2u, 3u}) {
    GenerateOptions options{.max_tokens = 40};
    options.sampling.temperature = 0.7f;
    options.sampling.seed = seed;
    const Generation wanted = plain.answer(prompt, options), got = drafting.answer(prompt, options);
    EXPECT_EQ(got.tokens, wanted.tokens) << seed;
    EXPECT_GT(got.timings.accepted_tokens, 0u);
  }
}

// Mirostat needs the surprise of each token before it draws the next. So such an answer has single steps.
TEST(Drafts, AreLeftOutWhereMirostatLooksAtEachToken) {
  const Tokens prompt = prompt_of(kAgreeing);
  Session plain(kAgreeing, options_of(Drafting::kOff)), drafting(kAgreeing, options_of(Drafting::kNext));
  ASSERT_TRUE(plain.runner && drafting.runner);
  GenerateOptions options{.max_tokens = 20};
  options.sampling.mirostat_tau = 5;
  const Generation got = drafting.answer(prompt, options);
  EXPECT_EQ(got.tokens, plain.answer(prompt, options).tokens);
  EXPECT_EQ(got.timings.drafted_tokens, 0u);
  // A drafting answer follows, whose layer has not seen the text between.
  const Tokens longer = joined(prompt, got, {3, 4});
  EXPECT_EQ(drafting.greedy(longer, 20).tokens, plain.greedy(longer, 20).tokens);
}

// A text goes on after a step whose draft was right, and after one whose draft was wrong.
TEST(Drafts, TextsGoOnWhereTheStatesStand) {
  const Tokens prompt = prompt_of(kAgreeing);
  Session plain(kAgreeing, options_of(Drafting::kOff)), drafting(kAgreeing, options_of(Drafting::kNext));
  ASSERT_TRUE(plain.runner && drafting.runner);
  std::vector<bool> kept;  // whether the last step's second row stood
  for (uint32_t count = 9; count < 19; ++count) {
    drafting.cached.clear();
    const Generation first = drafting.greedy(prompt, count);
    kept.push_back(first.timings.drafted_tokens + first.timings.accepted_tokens + 1 == count);
    const Tokens longer = joined(prompt, first, {3, 4});
    plain.cached.clear();
    const Generation wanted = plain.greedy(longer, 12);
    const Tokens cached = drafting.cached;
    const auto saved = gpu::run_to_completion(
        device(), drafting.runner->runner()->save(static_cast<uint32_t>(cached.size())));
    ASSERT_TRUE(saved) << saved.error().message();
    const Generation went_on = drafting.greedy(longer, 12);
    EXPECT_EQ(went_on.tokens, wanted.tokens) << count;
    EXPECT_EQ(went_on.timings.cached_tokens, prompt.size() + count - 1);
    const auto restored = gpu::run_to_completion(
        device(), drafting.runner->runner()->restore(static_cast<uint32_t>(cached.size()), *saved));
    ASSERT_TRUE(restored) << restored.error().message();
    drafting.cached = cached;
    EXPECT_EQ(drafting.greedy(longer, 12).tokens, wanted.tokens) << count;
  }
}

TEST(Drafts, EndWithTheContext) {
  const Tokens prompt = prompt_of(kAgreeing);
  for (const uint32_t ctx_len : {30u, 31u, 32u, 33u}) {
    model::RunnerOptions options = options_of(Drafting::kOff);
    options.ctx_len = ctx_len;
    Session plain(kAgreeing, options);
    options.drafting = Drafting::kNext;
    Session drafting(kAgreeing, options);
    ASSERT_TRUE(plain.runner && drafting.runner);
    const Generation wanted = plain.greedy(prompt, 100), got = drafting.greedy(prompt, 100);
    EXPECT_EQ(got.tokens, wanted.tokens) << ctx_len;
    EXPECT_EQ(got.stop, StopReason::kContextFull);
  }
}

// A checkpoint whose layer lacks a tensor runs without it.
TEST(Drafts, AnIncompleteLayerIsLeftOut) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "doppler_incomplete_next_layer";
  std::filesystem::create_directories(folder);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::ifstream in(folder_of(kAgreeing) + "/" + name, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    if (const size_t at = bytes.find("mtp.norm.weight"); at != std::string::npos) bytes[at] = 'x';
    std::ofstream(folder / name, std::ios::binary) << bytes;
  }
  const auto load_it = [&](Drafting drafting) {
    auto files = formats::open_file_set(folder.string());
    EXPECT_TRUE(files);
    const auto checkpoint = open_golden(std::move(*files));
    return gpu::run_to_completion(device(),
                                  model::DeviceModel::load(device(), *checkpoint, options_of(drafting), {}));
  };
  const auto without = load_it(Drafting::kAuto);
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_FALSE((*without)->has_drafts());
  EXPECT_NE((*without)->drafts_refused().find("mtp.norm"), std::string::npos) << (*without)->drafts_refused();
  const auto asked = load_it(Drafting::kNext);
  ASSERT_FALSE(asked);
  EXPECT_NE(asked.error().message().find("mtp.norm"), std::string::npos) << asked.error().message();
  std::filesystem::remove_all(folder);
}

TEST(Drafts, AreRefusedByName) {
  model::RunnerOptions options = options_of(Drafting::kNext);
  options.max_sequences = 2;
  const auto several = load(kAgreeing, options);
  ASSERT_FALSE(several);
  EXPECT_NE(several.error().message().find("for one sequence"), std::string::npos)
      << several.error().message();
  options.drafting = Drafting::kAuto;
  auto without = load(kAgreeing, options);
  ASSERT_TRUE(without) << without.error().message();
  EXPECT_FALSE((*without)->has_drafts());
  EXPECT_NE((*without)->drafts_refused().find("for one sequence"), std::string::npos);
}

}  // namespace
}  // namespace doppler
