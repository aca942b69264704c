// Several sequences that draft in the same steps: each gets the answer that it gets by itself without drafts. Greedy,
// drawn, with penalties, further samplers, log-probabilities and a grammar, side by side.
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

constexpr uint32_t kSlots = 4, kCtx = 160;
constexpr uint64_t kPagedBytes = 200 << 10;  // two of four experts

struct Ask {
  const char* name;
  GenerateOptions options;
  bool is_guided = false;
  Generation wanted = {};
  Tokens prompt = {};
};

GenerateOptions drawn(uint32_t tokens, uint64_t seed) {
  GenerateOptions options{.max_tokens = tokens};
  options.sampling.temperature = 0.6f;
  options.sampling.top_k = 3;
  options.sampling.seed = seed;
  return options;
}

// The requests that share steps. They are more than there are slots.
std::vector<Ask> asks() {
  std::vector<Ask> out = {{"greedy", drawn(50, 0)},
                          {"drawn", drawn(42, 1)},
                          {"penalties", drawn(50, 2)},
                          {"samplers", drawn(45, 3)},
                          {"probabilities", drawn(47, 4)},
                          {"grammar", drawn(40, 5), true},
                          {"greedy grammar", drawn(40, 0), true},
                          {"mirostat", drawn(30, 6)},
                          {"short", drawn(3, 7)}};
  out[0].options.sampling.temperature = out[6].options.sampling.temperature = 0;
  SamplingOptions& penalties = out[2].options.sampling;
  penalties.repeat_penalty = 1.3f;
  penalties.frequency_penalty = 0.1f;
  penalties.logit_bias = {{5, 2.0f}, {7, -3.0f}};
  out[3].options.sampling.dry_multiplier = 0.8f;
  out[3].options.sampling.xtc_probability = 0.3f;
  out[4].options.logprobs = true;
  out[4].options.top_logprobs = 3;
  out[7].options.sampling.mirostat_tau = 3;
  return out;
}

// Edits a text in some places.
Tokens nearly(const std::vector<int32_t>& tokens) {
  Tokens out(tokens.begin(), tokens.end());
  for (size_t i = 11; i < out.size(); i += 12) out[i] = (out[i] + 1) % 50;
  return out;
}

struct Model {
  const char* folder;
  uint64_t expert_bytes = 0;  // the others are paged; 0: all are on the device
};

class DraftsTogether : public testing::TestWithParam<Model> {
 protected:
  std::unique_ptr<model::DeviceModel> load(uint32_t sequences) {
    auto files = formats::open_file_set(golden_dir() + "/" + GetParam().folder);
    EXPECT_TRUE(files) << files.error().message();
    checkpoint_ = open_golden(std::move(*files));  // paged experts stay there
    auto loaded = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint_,
                                           {.policy = *kernels::make_policy("exact"),
                                            .ctx_len = kCtx,
                                            .chunk = 9,
                                            .cache_format = kernels::CacheFormat::kF32,
                                            .max_sequences = sequences,
                                            .block_len = 8,
                                            .pool_tokens = sequences * kCtx,
                                            .expert_bytes = sequences == 0 ? 0 : GetParam().expert_bytes},
                                           {}));
    EXPECT_TRUE(loaded) << loaded.error().message();
    return loaded ? std::move(*loaded) : nullptr;
  }
  // Answers by itself, without drafts.
  void answer_alone(std::vector<Ask>& all) {
    const auto runner = load(0);
    ASSERT_TRUE(runner);
    const References references = read_references(golden_dir() + "/" + GetParam().folder);
    const auto a = references.get<uint32_t>("prompt_a"), b = references.get<uint32_t>("prompt_b");
    for (size_t i = 0; i < all.size(); ++i) {
      Tokens& prompt = all[i].prompt;
      prompt = i % 2 == 0 ? a : b;
      prompt.push_back(static_cast<uint32_t>(i + 1));
      Tokens held;
      all[i].wanted =
          one_answer(*runner, prompt, all[i].options, held, model::Drafting::kOff,
                     [&](engine::Request& request) { guide(all[i], request, runner->config().vocab_size); });
    }
  }
  static void guide(const Ask& ask, engine::Request& request, uint32_t vocab_size) {
    request.settings.masked = ask.is_guided;
    if (ask.is_guided) request.guide = std::make_shared<Residues>(vocab_size);
  }

  std::unique_ptr<formats::Checkpoint> checkpoint_;

  struct Got {
    Tokens tokens;
    std::vector<kernels::LogProbEntry> logprobs;
    model::DraftTally drafts;
  };
  // Answers all together. rows: the rows of each that drafts; 0: as many as pay.
  std::vector<Got> answer_together(model::DeviceModel& runner, const std::vector<Ask>& all, uint32_t rows) {
    const uint32_t vocab_size = runner.config().vocab_size;
    auto scheduler = engine::Scheduler::create(*runner.runner(), {.vocab_size = vocab_size});
    EXPECT_TRUE(scheduler) << scheduler.error().message();
    std::vector<std::shared_ptr<engine::Stream>> streams;
    for (const Ask& ask : all) {
      GenerateOptions options = ask.options;
      options.draft_rows = rows;
      engine::StreamAnswer answer(nullptr,
                                  {.vocab_size = vocab_size,
                                   .ctx_len = runner.ctx_len(),
                                   .stop_tokens = {},
                                   .drafting = model::Drafting::kLookup},
                                  ask.prompt, options);
      auto request = answer.next_request({});
      EXPECT_TRUE(request) << request.error().message();
      request->settings.prediction = nearly(ask.wanted.tokens);
      guide(ask, *request, vocab_size);
      auto stream = (*scheduler)->submit(std::move(*request));
      EXPECT_TRUE(stream) << stream.error().message();
      streams.push_back(*stream);
    }
    while (true) {
      const auto goes_on = gpu::run_to_completion(device(), (*scheduler)->turn());
      EXPECT_TRUE(goes_on) << goes_on.error().message();
      EXPECT_TRUE((*scheduler)->check());
      if (!goes_on || !*goes_on) break;
    }
    std::vector<Got> out;
    for (const auto& stream : streams) {
      EXPECT_FALSE(stream->error()) << stream->error()->message();
      out.push_back({.tokens = stream->take(),
                     .logprobs = stream->take_logprobs(),
                     .drafts = stream->timings().drafts});
    }
    return out;
  }

  static void expect_wanted(const std::vector<Got>& got, const std::vector<Ask>& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(all[i].name);
      EXPECT_EQ(got[i].tokens, Tokens(all[i].wanted.tokens.begin(), all[i].wanted.tokens.end()));
      if (all[i].options.sampling.mirostat_tau > 0) {
        EXPECT_EQ(got[i].drafts.drafted, 0u);
      }
      if (!all[i].options.logprobs) continue;
      const auto& wanted = all[i].wanted.logprobs;
      ASSERT_EQ(got[i].logprobs.size(), wanted.size());
      for (size_t at = 0; at < wanted.size(); ++at) {
        EXPECT_NEAR(got[i].logprobs[at].chosen, wanted[at].logprob, 1e-4) << at;
        EXPECT_EQ(got[i].logprobs[at].best[0].token, static_cast<uint32_t>(wanted[at].top[0].first)) << at;
      }
    }
  }
};

TEST_P(DraftsTogether, AnswersAreTheSame) {
  std::vector<Ask> all = asks();
  answer_alone(all);
  const auto runner = load(kSlots);
  ASSERT_TRUE(runner);
  // Plans are made beside the first answers, which do not depend on them.
  for (uint64_t before = 0, made = 1; before != made;) {
    before = made;
    expect_wanted(answer_together(*runner, all, 8), all);
    made = runner->draft_plans().objects_created();
  }
  for (const uint32_t rows : {8u, 3u, 0u}) {
    SCOPED_TRACE(rows);
    const std::vector<Got> got = answer_together(*runner, all, rows);
    uint64_t accepted = 0;
    for (const Got& each : got) accepted += each.drafts.accepted;
    if (rows != 0) {
      EXPECT_GT(accepted, 90u);  // of 347 tokens
    }
    expect_wanted(got, all);
  }
}

// Tickets at the end of the ring are short. It has places for 1,024 steps.
TEST_P(DraftsTogether, TheRingOfTokensGoesRound) {
  std::vector<Ask> all(kSlots, {"greedy", drawn(120, 0)});
  for (Ask& ask : all) ask.options.sampling.temperature = 0;
  answer_alone(all);
  const auto runner = load(kSlots);
  ASSERT_TRUE(runner);
  for (int i = 0; i < 12; ++i) expect_wanted(answer_together(*runner, all, 8), all);
}

INSTANTIATE_TEST_SUITE_P(Models, DraftsTogether,
                         testing::Values(Model{"families_llama/llama"}, Model{"families_qwen3/qwen3"},
                                         Model{"families_gemma3/gemma3"}, Model{"families_moe/qwen3_moe"},
                                         Model{"families_moe/mixtral", kPagedBytes}),
                         [](const auto& of) {
                           const std::string name = of.param.folder;
                           const char* const ending = of.param.expert_bytes != 0 ? "_paged" : "";
                           return name.substr(name.find('/') + 1) + ending;
                         });

}  // namespace
}  // namespace doppler
