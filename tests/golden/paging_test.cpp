// Mixtures whose experts are paged against the same models with all experts on the device: the logits are equal bit for
// bit, and the tokens too. Two slots a layer, so that each prompt wants more experts than there are slots.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/convert/convert_native.h"
#include "formats/rdrr/test_models.h"
#include "formats/test_helpers.h"
#include "golden_helpers.h"
#include "kernels/tuning.h"
#include "model/device_model.h"
#include "model/load_estimate.h"
#include "one_answer.h"

namespace doppler {
namespace {

using formats::must;

constexpr uint32_t kSlots = 2;  // what a token uses

struct ModelCase {
  const char* name;
  const char* folder;
  const char* lane = "exact";
  const char* quantize = "";                               // as what it is converted before; empty: not
  const char *operation = "", *shape = "", *variant = "";  // which variant a product with experts takes
};

const ModelCase kSetups[] = {
    {"mixtral", "families_moe/mixtral"},
    {"qwen3_moe", "families_moe/qwen3_moe"},
    {"gpt_oss", "families_moe/gpt_oss"},  // biases; an expert's matrices read from a fused tensor
    // Tiles, which the GPU repacks, and their rows grouped by slot.
    {"mixtral_q8", "families_moe/mixtral", "dp4a", "q8_0", "expert_matvec.tile_q8", "tile_q8 64x64",
     "expert_matvec.tile_q8.grouped.dp4a"},
    // The choice of a GPU for one row, whose gates a rule multiplies into the product if experts are not paged.
    {"mixtral_q8_tiles", "families_moe/mixtral", "dp4a", "q8_0", "expert_matvec.tile_q8", "tile_q8 64x64",
     "expert_matvec.tile_q8.dp4a.tile"},
};

class Paging : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    const ModelCase& setup = GetParam();
    checkpoint_ = open(std::string(GOLDEN_DIR "/") + setup.folder);
    if (*setup.quantize) {
      formats::ConvertOptions options;
      options.to = formats::OutputKind::kRdrr;
      options.quantize = setup.quantize;
      options.name = setup.name;
      must(formats::convert_model(*checkpoint_, home_ / setup.name, options));
      checkpoint_ = open(home_ / setup.name);
    }
  }
  static std::unique_ptr<formats::Checkpoint> open(const std::string& folder) {
    return open_golden(must(formats::open_file_set(folder)));
  }

  model::RunnerOptions options(uint32_t slots, model::RunnerOptions options) {
    options.policy = must(kernels::make_policy(GetParam().lane));
    const auto tuning = std::make_shared<kernels::TuningTable>();
    if (*GetParam().variant) {
      tuning->choices[{GetParam().operation, GetParam().shape}] = {.variant = GetParam().variant,
                                                                   .constants = {}};
    }
    options.policy.tuning = tuning;
    options.cache_format = kernels::CacheFormat::kF32;
    options.ctx_len = 128;
    const auto estimate = must(model::estimate_load(*checkpoint_, options, device().caps()));
    const uint64_t experts = estimate.config.moe.n_experts;
    options.expert_bytes = (estimate.memory.expert_bytes + experts - 1) / experts * slots;
    return options;
  }
  // slots 0: all experts are resident.
  std::unique_ptr<model::DeviceModel> load(uint32_t slots, model::RunnerOptions given) {
    return must(gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint_, options(slots, std::move(given)), {})));
  }

  std::vector<float> logits(model::DeviceModel& runner) {
    const auto prompt = prompt_b();
    std::vector<float> all;
    for (size_t at = 0; at < prompt.size(); at += runner.chunk()) {
      const auto part = std::span(prompt).subspan(at, std::min<size_t>(runner.chunk(), prompt.size() - at));
      const auto rows =
          must(gpu::run_to_completion(device(), runner.logits(static_cast<uint32_t>(at), part)));
      all.insert(all.end(), rows.logits.begin(), rows.logits.end());
    }
    return all;
  }
  std::vector<uint32_t> prompt_b() {
    return read_references(std::string(GOLDEN_DIR "/") + GetParam().folder).get<uint32_t>("prompt_b");
  }

  std::vector<int32_t> tokens(model::DeviceModel& runner, float temperature) {
    GenerateOptions options{.max_tokens = 12};
    options.sampling.temperature = temperature;
    return one_answer(runner, prompt_b(), options).tokens;
  }

  const formats::TemporaryFolder home_;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
};

TEST_P(Paging, LogitsAreThoseOfAllExpertsResident) {
  for (const uint32_t chunk : {128u, 7u}) {
    const auto resident = load(0, {.chunk = chunk, .all_logits = true});
    const auto paged = load(kSlots, {.chunk = chunk, .all_logits = true});
    ASSERT_EQ(resident->pager(), nullptr);
    ASSERT_NE(paged->pager(), nullptr);
    EXPECT_EQ(paged->pager()->shape().n_slots, kSlots);
    EXPECT_EQ(logits(*paged), logits(*resident)) << "chunk " << chunk;
    const auto is_asked = [](const kernels::Choice& made) { return made.variant == GetParam().variant; };
    const bool wants_many_rows =
        std::string_view(GetParam().variant).find("grouped") != std::string_view::npos;
    EXPECT_EQ(std::ranges::any_of(paged->choices(), is_asked),
              *GetParam().variant && (!wants_many_rows || chunk > 64));
    EXPECT_GT(paged->pager()->figures().misses, 2 * kSlots);
    EXPECT_LT(paged->memory().weight_bytes, resident->memory().weight_bytes);
  }
}

TEST_P(Paging, TokensAreThoseOfAllExpertsResident) {
  const auto resident = load(0, {.chunk = 5});
  const auto paged = load(kSlots, {.chunk = 5});
  const gpu::Counters before = device().counters();
  for (const float temperature : {0.0f, 0.8f}) {
    EXPECT_EQ(tokens(*paged, temperature), tokens(*resident, temperature));
  }
  const gpu::Counters& after = device().counters();
  EXPECT_EQ(after.buffers_created, before.buffers_created);
  EXPECT_EQ(after.bind_groups_created, before.bind_groups_created);
  const model::PagingFigures& figures = paged->pager()->figures();
  EXPECT_GT(figures.uses, figures.misses);
  EXPECT_GT(figures.bytes, 0u);
  record_shown(paged->config().family, {.lane = GetParam().lane, .feature = "paged_experts"});
}

// More requests than slots, each with what it says by itself: windows in rings, groups of rows, repacked tiles,
// recurrent states.
using PagingTogether = Paging;

TEST_P(PagingTogether, EachAnswersAsByItself) {
  constexpr uint32_t kSequences = 3;
  const auto one = load(0, {.chunk = 9});
  const auto many = load(kSlots, {.chunk = 9, .max_sequences = kSequences, .block_len = 8});
  ASSERT_NE(many->pager(), nullptr);
  const uint32_t vocab_size = many->config().vocab_size;
  const auto scheduler = must(engine::Scheduler::create(*many->runner(), {.vocab_size = vocab_size}));
  std::vector<std::vector<int32_t>> wanted;
  std::vector<std::shared_ptr<engine::Stream>> streams;
  for (uint32_t i = 0; i < 2 * kSequences; ++i) {
    GenerateOptions options{.max_tokens = 10 + i, .ignore_eos = true};
    options.sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    std::vector<uint32_t> prompt = prompt_b();
    prompt.resize(prompt.size() - i);
    wanted.push_back(one_answer(*one, prompt, options).tokens);
    engine::StreamAnswer answer(
        nullptr, {.vocab_size = vocab_size, .ctx_len = many->ctx_len(), .stop_tokens = {}}, prompt, options);
    streams.push_back(must(scheduler->submit(must(answer.next_request({})))));
  }
  while (must(gpu::run_to_completion(device(), scheduler->turn()))) {
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_FALSE(streams[i]->error()) << streams[i]->error()->message();
    const std::vector<uint32_t> got = streams[i]->take();
    EXPECT_EQ(std::vector<int32_t>(got.begin(), got.end()), wanted[i]) << i;
  }
  EXPECT_GT(many->pager()->figures().misses, 2 * kSlots);
}

// The caller of tokens() ends a step. Calls before that, which follow the step, find what it writes.
using PagingInTurn = Paging;

TEST_P(PagingInTurn, ACopyHasTheKeysOfTheStepBefore) {
  const auto many = load(kSlots, {.chunk = 16, .max_sequences = 2, .block_len = 8});
  model::SequenceRunner& runner = *many->runner();
  std::vector<uint32_t> prompt = prompt_b();
  prompt.resize(10);
  const auto first_of = [&](const model::Piece& piece) {
    const model::Ticket ticket = must(runner.step({}, {&piece, 1}));
    return [&, ticket, slot = piece.slot] {
      return must(gpu::run_to_completion(device(), runner.tokens(ticket)))[slot];
    };
  };
  const model::GenerationSettings settings{.greedy = true, .max_tokens = 1};
  const std::span<const uint32_t> all = prompt, head = all.first(8);
  const uint32_t blocks[] = {0, 1}, copies[] = {2, 3};
  EXPECT_TRUE(runner.begin(0, settings, {}));
  EXPECT_TRUE(runner.map(0, 0, blocks));
  const auto wanted = first_of({.slot = 0, .pos = 0, .tokens = all, .sample = true});
  EXPECT_TRUE(runner.copy_block(0, 2));
  EXPECT_TRUE(runner.begin(1, settings, head));
  EXPECT_TRUE(runner.map(1, 0, copies));
  auto reading = runner.read_block(0);
  reading.start();
  const uint32_t token = wanted();
  EXPECT_EQ(first_of({.slot = 1, .pos = 8, .tokens = all.subspan(8), .sample = true})(), token);

  // The same block by way of the host, while another step is open.
  const std::vector<uint8_t> bytes = must(gpu::run_to_completion(device(), std::move(reading)));
  const uint32_t others[] = {4, 5};
  EXPECT_TRUE(runner.begin(0, settings, {}));
  const auto other = first_of({.slot = 0, .pos = 0, .tokens = all, .sample = true});
  auto writing = runner.write_block(4, bytes);
  writing.start();
  EXPECT_TRUE(runner.begin(1, settings, head));
  EXPECT_TRUE(runner.map(1, 0, others));
  EXPECT_EQ(other(), token);
  EXPECT_TRUE(gpu::run_to_completion(device(), std::move(writing)));
  EXPECT_EQ(first_of({.slot = 1, .pos = 8, .tokens = all.subspan(8), .sample = true})(), token);
}

// The host gives the drafts. A step of several rows stops for their experts as a step of one row does.
using PagingWithDrafts = Paging;

TEST_P(PagingWithDrafts, DraftsDoNotChangeTheAnswer) {
  const auto resident = load(0, {.chunk = 9}), paged = load(kSlots, {.chunk = 9});
  for (const float temperature : {0.0f, 0.8f}) {
    GenerateOptions options{.max_tokens = 40};
    options.sampling.temperature = temperature;
    const Generation wanted = one_answer(*resident, prompt_b(), options);
    const Generation got = answer_with_drafts(*paged, prompt_b(), options, wanted.tokens);
    EXPECT_EQ(got.tokens, wanted.tokens);
    EXPECT_GT(got.timings.accepted_tokens, 20u);
  }
}

// The pager knows a plan's parts by its address. Plans of fewer rows are made after those of more.
TEST_P(PagingWithDrafts, PlansStayWhereTheyAre) {
  const auto many = load(kSlots, {.chunk = 16, .max_sequences = 8, .block_len = 8});
  const model::DraftNeed need{.drafter = model::Drafter::kGiven, .greedy = true};
  std::map<uint32_t, const gpu::Plan*> places;
  for (const uint32_t slots : {8u, 4u, 1u}) {
    while (many->runner()->may_prepare_drafts(need, slots)) {
      ASSERT_TRUE(gpu::run_to_completion(device(), many->runner()->prepare_drafts(need, slots)));
      for (const uint32_t rows : many->runner()->draft_rows(need)) {
        const gpu::Plan* const plan = &many->draft_plans().plan(need, rows);
        EXPECT_EQ(places.try_emplace(rows, plan).first->second, plan) << rows;
        EXPECT_EQ(plan->max_rows, rows);
      }
    }
  }
  EXPECT_GT(places.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Models, Paging, testing::ValuesIn(kSetups),
                         [](const auto& made) { return std::string(made.param.name); });

INSTANTIATE_TEST_SUITE_P(Models, PagingInTurn, testing::Values(kSetups[0], kSetups[2]),
                         [](const auto& made) { return std::string(made.param.name); });

INSTANTIATE_TEST_SUITE_P(Models, PagingTogether,
                         testing::Values(kSetups[0], kSetups[1], kSetups[2], kSetups[3], kSetups[4],
                                         ModelCase{"qwen3_5_moe", "families_moe2/qwen3_5_moe"}),
                         [](const auto& made) { return std::string(made.param.name); });

// In other lanes a few rows round like a prompt's rows.
INSTANTIATE_TEST_SUITE_P(Models, PagingWithDrafts, testing::Values(kSetups[0], kSetups[1], kSetups[2]),
                         [](const auto& made) { return std::string(made.param.name); });

// Models that cannot be paged are refused by name.
class PagingRefused : public Paging {
 protected:
  std::string refusal(model::RunnerOptions options) {
    auto loaded = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint_, std::move(options), {}));
    return loaded ? "" : loaded.error().sentence();
  }
};

TEST_P(PagingRefused, ThePersistentLaneAndTooLittleMemory) {
  model::RunnerOptions persistent = options(kSlots, {});
  persistent.policy = must(kernels::make_policy("persistent"));
  EXPECT_NE(refusal(persistent).find("lane persistent"), std::string::npos);
  EXPECT_NE(refusal(options(1, {})).find("the 2 of one token take"), std::string::npos);
  checkpoint_ = open(GOLDEN_DIR "/families_llama/llama");
  model::RunnerOptions dense;
  dense.expert_bytes = 1;
  EXPECT_NE(refusal(dense).find("the model has none"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Models, PagingRefused, testing::Values(kSetups[0]),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace doppler
