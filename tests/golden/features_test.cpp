// Pairs of features that no test of one feature shows (docs/reference/features.md): each way to load a model with
// whatever a request may ask for. Choices are held to the logits of all rows, which the same model gives.
#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "choice_checks.h"
#include "engine/embed.h"
#include "formats/adapters/whole_tensors.h"
#include "formats/test_helpers.h"
#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "model/load_estimate.h"
#include "one_answer.h"

namespace doppler {
namespace {

using formats::must;
using kernels::CacheFormat;
using model::Drafting;

struct Way {
  const char *name, *folder;
  CacheFormat cache = CacheFormat::kF32;
  bool is_paged = false, has_host_table = false, drafts = false;
  const char* adapter = "";
};

constexpr double kQ8Bound = 2e-2;
constexpr CacheFormat kQ8 = CacheFormat::kQ8_0;
const Way kWays[] = {
    {.name = "q8_0", .folder = "families_llama/llama", .cache = kQ8, .drafts = true},
    {.name = "windows", .folder = "families_gemma3/gemma3", .drafts = true},
    {.name = "states", .folder = "families_recurrent/qwen3_5"},
    {.name = "host_table", .folder = "families_gemma4/gemma3n", .has_host_table = true, .drafts = true},
    {.name = "paged", .folder = "families_moe/mixtral", .is_paged = true, .drafts = true},
    {.name = "adapters", .folder = "adapters/llama", .drafts = true, .adapter = "all_r8"},
};
const Way kPairs[] = {
    {.name = "windows_q8_0", .folder = "families_gemma3/gemma3", .cache = kQ8, .drafts = true},
    {.name = "states_q8_0", .folder = "families_recurrent/qwen3_5", .cache = kQ8},
    {.name = "host_table_q8_0",
     .folder = "families_gemma4/gemma3n",
     .cache = kQ8,
     .has_host_table = true,
     .drafts = true},
    {.name = "paged_q8_0", .folder = "families_moe/mixtral", .cache = kQ8, .is_paged = true, .drafts = true},
    {.name = "paged_windows", .folder = "families_moe/gpt_oss", .is_paged = true, .drafts = true},
    {.name = "paged_states", .folder = "families_moe2/qwen3_5_moe", .is_paged = true},
    {.name = "adapters_windows", .folder = "adapters/gemma3", .drafts = true, .adapter = "all_r8"},
    {.name = "adapters_paged",
     .folder = "adapters/mixtral",
     .is_paged = true,
     .drafts = true,
     .adapter = "attn_r8"},
};

struct Loaded {
  std::unique_ptr<formats::Checkpoint> checkpoint;
  std::unique_ptr<model::DeviceModel> runner;
};

Loaded load(const Way& setup, uint32_t sequences, bool all_logits, bool embeds = false) {
  const std::string folder = golden_dir() + "/" + setup.folder;
  Loaded out{.checkpoint = open_golden(must(formats::open_file_set(folder))), .runner = nullptr};
  model::RunnerOptions options{.policy = *kernels::make_policy("exact"),
                               .ctx_len = 128,
                               .chunk = 9,
                               .cache_format = setup.cache,
                               .all_logits = all_logits,
                               .max_sequences = sequences,
                               .block_len = 8};
  options.layer_table_on_host = setup.has_host_table;
  if (embeds) options.pooling = formats::Pooling::kMean;
  if (setup.is_paged) {  // as many experts as a token uses
    const auto estimate = must(model::estimate_load(*out.checkpoint, options, device().caps()));
    const uint64_t experts = estimate.config.moe.n_experts;
    options.expert_bytes =
        (estimate.memory.expert_bytes + experts - 1) / experts * estimate.config.moe.n_used;
  }
  if (*setup.adapter) {
    auto files = must(formats::open_file_set(folder + "/adapters/" + setup.adapter));
    const auto adapter = must(gpu::run_to_completion(device(), formats::open_adapter(std::move(files))));
    auto fitted = std::make_shared<formats::FittedAdapter>(
        must(formats::fit_adapter(adapter, must(formats::read_config(*out.checkpoint)))));
    formats::put_whole_tensors(*fitted, *out.checkpoint);
    options.adapters = {.slots = 1, .first = {{fitted}}};
  }
  out.runner = must(gpu::run_to_completion(
      device(), model::DeviceModel::load(device(), *out.checkpoint, std::move(options), {})));
  return out;
}

class Features : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const std::string folder = golden_dir() + "/" + GetParam().folder;
    const bool has_adapter = *GetParam().adapter;
    const References refs =
        read_references(folder, has_adapter ? "adapter_refs.safetensors" : "refs.safetensors");
    prompt_ = refs.get<uint32_t>(has_adapter ? "prompt" : "prompt_a");
    if (prompt_.size() > 12) prompt_.resize(12);
  }
  static void TearDownTestSuite() { loaded_.clear(); }

  // Loaded once for all tests.
  static model::DeviceModel& runner(uint32_t sequences = 0, bool all_logits = false) {
    const std::string key =
        std::string(GetParam().name) + " " + std::to_string(sequences) + (all_logits ? " logits" : "");
    auto [at, is_new] = loaded_.try_emplace(key);
    if (is_new) at->second = load(GetParam(), sequences, all_logits);
    return *at->second.runner;
  }

  std::vector<float> logits(const Tokens& answer) {
    model::DeviceModel& of = runner(0, true);
    Tokens text = prompt_;
    text.insert(text.end(), answer.begin(), answer.end() - 1);
    std::vector<float> all;
    for (size_t at = 0; at < text.size(); at += of.chunk()) {
      const auto part = std::span(text).subspan(at, std::min<size_t>(of.chunk(), text.size() - at));
      const auto rows = must(gpu::run_to_completion(device(), of.logits(static_cast<uint32_t>(at), part)));
      all.insert(all.end(), rows.logits.begin(), rows.logits.end());
    }
    const size_t count = answer.size() * of.config().vocab_size;
    return {all.end() - static_cast<ptrdiff_t>(count), all.end()};
  }
  static double bound() { return GetParam().cache == kQ8 ? kQ8Bound : kLogitBound; }
  Chooser chooser() {
    return {.vocab_size = runner().config().vocab_size,
            .prompt = prompt_,
            .bound = bound(),
            .answer =
                [this](GenerateOptions options, const Adjust& adjust) {
                  Tokens held;
                  return one_answer(runner(), prompt_, std::move(options), held, Drafting::kOff, adjust);
                },
            .logits = [this](const Tokens& answer) { return logits(answer); }};
  }

  Adjust guide() {
    return [](engine::Request& request) { guide_by_residues(request, runner().config().vocab_size); };
  }

  struct Asked {
    GenerateOptions options;
    Adjust adjust = {};
    Drafting drafting = Drafting::kOff;
  };
  // Streams of the prompt in the same steps, when they have ended.
  std::vector<std::shared_ptr<engine::Stream>> together(engine::Scheduler& scheduler,
                                                        const std::vector<Asked>& all) {
    const uint32_t vocab_size = runner(kSlots).config().vocab_size;
    std::vector<std::shared_ptr<engine::Stream>> streams;
    for (const Asked& each : all) {
      engine::StreamAnswer answer(nullptr,
                                  {.vocab_size = vocab_size,
                                   .ctx_len = runner(kSlots).ctx_len(),
                                   .stop_tokens = {},
                                   .drafting = each.drafting},
                                  prompt_, each.options);
      auto request = must(answer.next_request({}));
      if (each.adjust) each.adjust(request);
      streams.push_back(must(scheduler.submit(std::move(request))));
    }
    while (must(gpu::run_to_completion(device(), scheduler.turn()))) {
    }
    EXPECT_TRUE(scheduler.check());
    for (const auto& stream : streams) EXPECT_FALSE(stream->error()) << stream->error()->message();
    return streams;
  }
  std::unique_ptr<engine::Scheduler> scheduler_of_many() {
    model::DeviceModel& many = runner(kSlots);
    return must(
        engine::Scheduler::create(*many.runner(), {.vocab_size = many.config().vocab_size, .least_kept = 8}));
  }

  static constexpr uint32_t kSlots = 4;
  static std::map<std::string, Loaded> loaded_;
  Tokens prompt_;
};
std::map<std::string, Loaded> Features::loaded_;

TEST_P(Features, GrammarsHold) { expect_grammar(chooser()); }
TEST_P(Features, LogprobsAreTheLogits) { expect_logprobs(chooser()); }
TEST_P(Features, SamplersChooseByTheLogits) { expect_samplers(chooser()); }

// A grammar, penalties and log-probabilities in one answer.
TEST_P(Features, AllIsAskedForAtOnce) {
  const Chooser of = chooser();
  const Generation got = of.answer(all_choices(), guide());
  const Tokens answer = tokens_of(got);
  expect_all_choices(of, answer);
  EXPECT_EQ(got.logprobs.size(), answer.size());
}

TEST_P(Features, SavedTextsGoOn) {
  Tokens held;
  Tokens longer = prompt_;
  for (const int32_t token : one_answer(runner(), prompt_, greedy_choice(), held).tokens)
    longer.push_back(static_cast<uint32_t>(token));
  longer.insert(longer.end(), {7, 9});
  const auto count = static_cast<uint32_t>(held.size());
  ASSERT_EQ(runner().runner()->continues_from(count), count);
  const auto saved = must(gpu::run_to_completion(device(), runner().runner()->save(count)));
  const Tokens text = held;
  const std::pair<GenerateOptions, Adjust> asked[] = {{greedy_choice(), {}}, {all_choices(), guide()}};
  for (const auto& [options, adjust] : asked) {
    Tokens none;
    const Generation wanted = one_answer(runner(), longer, options, none, Drafting::kOff, adjust);
    EXPECT_EQ(wanted.timings.cached_tokens, 0u);
    ASSERT_TRUE(gpu::run_to_completion(device(), runner().runner()->restore(count, saved)));
    held = text;
    const Generation got = one_answer(runner(), longer, options, held, Drafting::kOff, adjust);
    EXPECT_EQ(got.timings.cached_tokens, count);
    EXPECT_EQ(got.logprobs.size(), wanted.logprobs.size());
    if (GetParam().cache != kQ8) {  // rows of a prompt and steps round keys differently
      EXPECT_EQ(got.tokens, wanted.tokens);
    }
  }
}

// A text that goes on, in a model for one sequence; a prompt that comes again, in a model for several.
TEST_P(Features, PrefixesAreFound) {
  Tokens held, none;
  const Generation first = one_answer(runner(), prompt_, greedy_choice(), held);
  Tokens longer = prompt_;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
  longer.push_back(7);
  const Generation went_on = one_answer(runner(), longer, greedy_choice(), held);
  EXPECT_EQ(went_on.timings.cached_tokens, prompt_.size() + kChosen - 1);
  if (GetParam().cache != kQ8) {
    EXPECT_EQ(went_on.tokens, one_answer(runner(), longer, greedy_choice(), none).tokens);
  }
  const auto scheduler = scheduler_of_many();
  const Tokens wanted = together(*scheduler, {{greedy_choice()}})[0]->take();
  const auto again = together(*scheduler, {{greedy_choice()}})[0];
  EXPECT_EQ(again->timings().cached_tokens, 8u);  // a whole block
  EXPECT_EQ(again->take(), wanted);
}

// Drafts never change an answer. A setup without drafts has none.
TEST_P(Features, DraftsChangeNothing) {
  Tokens held;
  const Generation wanted = one_answer(runner(), prompt_, greedy_choice(), held);
  GenerateOptions options = greedy_choice();
  options.draft_rows = 4;
  const Adjust predict = [&](engine::Request& request) { request.settings.prediction = tokens_of(wanted); };
  held.clear();
  const Generation got = one_answer(runner(), prompt_, options, held, Drafting::kLookup, predict);
  EXPECT_EQ(got.tokens, wanted.tokens);
  EXPECT_EQ(got.timings.accepted_tokens > 4, GetParam().drafts);
  EXPECT_EQ(got.timings.drafted_tokens > 0, GetParam().drafts);
  const auto scheduler = scheduler_of_many();
  const Tokens alone = together(*scheduler, {{greedy_choice()}})[0]->take();
  std::vector<std::shared_ptr<engine::Stream>> streams;
  for (int i = 0; i < 3; ++i) {  // plans are made beside the first answers
    streams = together(*scheduler, std::vector<Asked>(3, {options, predict, Drafting::kLookup}));
    for (const auto& stream : streams) EXPECT_EQ(stream->take(), alone);
  }
  EXPECT_EQ(streams[0]->timings().drafts.accepted > 0, GetParam().drafts);
}

// Requests that differ share steps.
TEST_P(Features, SequencesAreEachByItself) {
  const Chooser of = chooser();
  const auto scheduler = scheduler_of_many();
  const auto streams = together(*scheduler, {{greedy_choice()},
                                             {greedy_choice(), guide()},
                                             {penalised_choice()},
                                             {second_choice()},
                                             {told_choice()}});
  for (size_t i = 1; i < streams.size(); ++i) EXPECT_EQ(streams[i]->timings().cached_tokens, 8u) << i;
  const Tokens greedy = streams[0]->take();
  if (GetParam().cache != kQ8) {
    EXPECT_EQ(greedy, tokens_of(of.answer(greedy_choice(), {})));
  }
  expect_grammar(of, streams[1]->take());
  expect_penalties(of, streams[2]->take());
  expect_seconds(of, streams[3]->take());
  const auto told = streams[4]->take_logprobs();
  EXPECT_EQ(streams[4]->take(), greedy);
  const std::vector<float> all = of.logits(greedy);
  ASSERT_EQ(told.size(), greedy.size());
  for (size_t i = 0; i < told.size(); ++i) {
    double sum = 0;
    for (const float logit : of.row(all, i)) sum += std::exp(static_cast<double>(logit));
    EXPECT_NEAR(told[i].chosen, static_cast<double>(of.row(all, i)[greedy[i]]) - std::log(sum), bound()) << i;
  }
}

// Means of the states of all tokens, against a load with nothing special and the text in one piece.
TEST_P(Features, EmbeddingsAreTheSame) {
  const Way plain{.name = "", .folder = GetParam().folder, .adapter = GetParam().adapter};
  const Loaded wanted = load(plain, 0, false, true), got = load(GetParam(), 0, false, true);
  const uint32_t dimensions = must(engine::checked_dimensions(got.runner->config(), 0));
  const auto vector_of = [&](const Loaded& loaded) {
    return must(
        gpu::run_to_completion(device(), engine::embed_tokens(*loaded.runner, prompt_, {}, dimensions)));
  };
  const double error = relative_l2(vector_of(got), vector_of(wanted));
  EXPECT_LE(error, GetParam().cache == kQ8 ? kQ8Bound : kExactTolerance);
  EXPECT_EQ(error > 1e-6, GetParam().cache == kQ8) << "was the cache in bytes?";
}

// Two ways at once.
class PairsOfWays : public Features {};

TEST_P(PairsOfWays, ChooseByTheLogits) {
  expect_samplers(chooser());
  expect_logprobs(chooser());
}

INSTANTIATE_TEST_SUITE_P(Models, PairsOfWays, testing::ValuesIn(kPairs),
                         [](const auto& made) { return std::string(made.param.name); });
INSTANTIATE_TEST_SUITE_P(Models, Features, testing::ValuesIn(kWays),
                         [](const auto& made) { return std::string(made.param.name); });

// Models that the lane persistent cannot serve decode by the chain, and a line says why.
TEST(LanePersistent, IsLeftOutInOneSentence) {
  const auto told = [](const char* folder, model::RunnerOptions options) {
    std::string lines;
    set_log_sink([&](LogLevel, std::string_view line) { lines += line; });
    options.policy = *kernels::make_policy("persistent");
    options.ctx_len = 64;
    options.block_len = 8;
    const auto checkpoint = open_golden(must(formats::open_file_set(golden_dir() + "/" + folder)));
    const auto loaded = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint, std::move(options), {}));
    set_log_sink({});
    EXPECT_TRUE(loaded) << loaded.error().message();
    return lines;
  };
  const auto has = [](const std::string& lines, const char* reason) {
    return lines.find(std::string("decode_layers.persistent is not used: ") + reason) != std::string::npos;
  };
  constexpr const char* kLlama = "families_llama/llama";
  EXPECT_TRUE(has(told(kLlama, {.max_sequences = 2}), "the model is loaded for several sequences"));
  model::RunnerOptions adapted;
  adapted.adapters = {.slots = 1, .rank = 4, .everywhere = true};
  EXPECT_TRUE(has(told(kLlama, std::move(adapted)), "the model has room for adapters"));
  EXPECT_TRUE(has(told(kLlama, {.cache_format = kQ8}), "the cache is in q8_0"));
  EXPECT_TRUE(has(told("families_recurrent/qwen3_5", {}), "the caches of the layers differ"));
  EXPECT_TRUE(has(told("families_gemma4/gemma3n", {}), "the caches of the layers differ"));
}

}  // namespace
}  // namespace doppler
