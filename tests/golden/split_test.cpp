// A model whose layers lie on several devices: one adapter, opened again for each part. In the lane exact it gives what
// one device gives, bit for bit: logits of prompts in chunks, and the log-probabilities of each step of an answer, by
// itself and among several sequences.
#include <gtest/gtest.h>

#include <bit>
#include <filesystem>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "many_answers.h"
#include "model/split_plan.h"
#include "model/split_sequence_native.h"
#include "one_answer.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;
using model::DeviceModel;
using Tokens = std::vector<uint32_t>;

constexpr uint32_t kCtxLen = 64, kChunk = 8, kNew = 12;

// A family of each kind: dense, with norms of q and k, with windows, recurrent, mixtures. All families if
// DOPPLER_GOLDEN_ALL is set.
constexpr std::string_view kModels[] = {"llama", "qwen3", "gemma3", "qwen3_5", "mixtral", "gpt_oss_mxfp4"};
// Their layers read more than the stream before them, and models of one layer have no parts.
constexpr std::string_view kWhole[] = {"gemma3n", "gemma4", "gemma4_vlm"};

formats::ModelConfig config_of(const std::string& folder) {
  const auto checkpoint = open_golden(std::move(*formats::open_file_set(folder)));
  return *formats::read_config(*checkpoint);
}

std::vector<std::string> folders() {
  std::vector<std::string> out;
  for (const fs::path& folder : case_folders()) {
    const std::string name = folder.filename().string();
    const bool is_whole = std::ranges::find(kWhole, name) != std::end(kWhole);
    const bool is_taken = std::ranges::find(kModels, name) != std::end(kModels) || takes_all_cases();
    if (is_taken && !is_whole && config_of(folder.string()).n_layers > 1) out.push_back(folder.string());
  }
  return out;
}

// Devices beside device(), which has the last part.
gpu::Device& further_device(size_t index) {
  static std::vector<std::unique_ptr<gpu::Device>> opened;
  while (opened.size() <= index) {
    auto task = gpu::Device::open({});
    task.start();
    opened.push_back(std::move(*task.take()));
  }
  return *opened[index];
}

struct Parts {
  std::vector<std::unique_ptr<DeviceModel>> runners;
  std::unique_ptr<model::SplitSequence> steps;
  DeviceModel& last() { return *runners.back(); }
  gpu::Device& device_of(size_t i) { return runners[i]->device(); }
};

class Split : public testing::TestWithParam<std::string> {
 protected:
  // Between two devices a norm after experts has a dispatch of its own, which adds in another order.
  static model::RunnerOptions options() {
    model::RunnerOptions out{.policy = *kernels::make_policy("exact"),
                             .ctx_len = kCtxLen,
                             .chunk = kChunk,
                             .cache_format = kernels::CacheFormat::kF32};
    if (config_of(GetParam()).moe.n_experts != 0) {
      EXPECT_TRUE(out.rules.set("expert_sum_norm=off"));
    }
    return out;
  }

  static std::unique_ptr<DeviceModel> load(gpu::Device& on, const std::string& folder,
                                           model::RunnerOptions options) {
    auto files = formats::open_file_set(folder);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto runner = gpu::run_to_completion(on, DeviceModel::load(on, *checkpoint, std::move(options), {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }

  Parts load_parts(const model::RunnerOptions& options, size_t count = 2) {
    const auto checkpoint = open_golden(std::move(*formats::open_file_set(GetParam())));
    const std::vector<const gpu::Caps*> caps(count, &device().caps());
    auto plan = model::plan_split(*checkpoint, options, caps);
    EXPECT_TRUE(plan) << plan.error().message();
    Parts parts;
    if (!plan) return parts;
    EXPECT_TRUE(plan->fits) << plan->fits.error().message();
    std::vector<DeviceModel*> all;
    for (size_t i = 0; i < count; ++i) {
      model::RunnerOptions of_part = plan->options;
      of_part.part = plan->shares[i].layers;
      auto runner = load(i + 1 == count ? device() : further_device(i), GetParam(), of_part);
      if (!runner) return {};
      parts.runners.push_back(std::move(runner));
      all.push_back(parts.runners.back().get());
    }
    if (options.all_logits) return parts;
    parts.steps = std::move(*model::SplitSequence::make(all));
    parts.last().go_through(parts.steps.get());
    return parts;
  }

  Tokens prompt() const { return read_references(GetParam()).get<uint32_t>("prompt_b"); }

  static Generation answer(DeviceModel& runner, const Tokens& prompt, Tokens& held) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = kNew;
    options.logprobs = true;
    options.top_logprobs = 4;
    return one_answer(runner, prompt, options, held);
  }

  static void expect_same(const Generation& got, const Generation& wanted) {
    EXPECT_EQ(got.tokens, wanted.tokens);
    ASSERT_EQ(got.logprobs.size(), wanted.logprobs.size());
    for (size_t i = 0; i < got.logprobs.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(got.logprobs[i].logprob),
                std::bit_cast<uint32_t>(wanted.logprobs[i].logprob))
          << "token " << i;
      EXPECT_EQ(got.logprobs[i].top, wanted.logprobs[i].top) << "token " << i;
    }
  }
};

TEST_P(Split, LogitsEqualThoseOfOneDevice) {
  model::RunnerOptions all = options();
  all.all_logits = true;
  const auto whole = load(device(), GetParam(), all);
  Parts parts = load_parts(all);
  ASSERT_TRUE(whole && parts.runners.size() == 2);
  const Tokens text = prompt();
  for (uint32_t at = 0; at < text.size(); at += kChunk) {
    const auto chunk = std::span(text).subspan(at, std::min<size_t>(kChunk, text.size() - at));
    auto wanted = gpu::run_to_completion(device(), whole->logits(at, chunk));
    ASSERT_TRUE(wanted) << wanted.error().message();
    auto stream = gpu::run_to_completion(parts.device_of(0), parts.runners[0]->logits(at, chunk));
    ASSERT_TRUE(stream) << stream.error().message();
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(stream->logits.data()),
                                         stream->logits.size() * sizeof(float));
    ASSERT_EQ(stream->logits.size(), chunk.size() * whole->config().hidden_dim);
    ASSERT_TRUE(gpu::run_to_completion(device(), parts.last().stream_in().put(device(), bytes)));
    auto got = gpu::run_to_completion(device(), parts.last().logits(at, chunk));
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->logits.size(), wanted->logits.size());
    EXPECT_EQ(std::memcmp(got->logits.data(), wanted->logits.data(), got->logits.size() * sizeof(float)), 0)
        << "positions from " << at;
  }
}

TEST_P(Split, AnswersEqualThoseOfOneDevice) {
  const auto whole = load(device(), GetParam(), options());
  Parts parts = load_parts(options());
  ASSERT_TRUE(whole && parts.steps);
  Tokens held, held_by_parts;
  Tokens text = prompt();
  text.resize(std::min<size_t>(text.size(), kCtxLen - 2 * kNew - 2));
  const Generation wanted = answer(*whole, text, held);
  expect_same(answer(parts.last(), text, held_by_parts), wanted);
  // The next turn goes on after what is held.
  text.insert(text.end(), wanted.tokens.begin(), wanted.tokens.end());
  text.push_back(3);
  EXPECT_EQ(held_by_parts, held);
  expect_same(answer(parts.last(), text, held_by_parts), answer(*whole, text, held));
  EXPECT_EQ(parts.last().runner()->continues_from(20), whole->runner()->continues_from(20));
}

TEST_P(Split, SeveralSequencesEqualThoseOfOneDevice) {
  model::RunnerOptions several = options();
  several.rules = {};  // tokens are equal with that rule too
  several.max_sequences = 5;
  several.block_len = 8;
  const Tokens all = prompt();
  std::vector<Tokens> prompts;
  for (const size_t count : {size_t{17}, size_t{9}, size_t{3}, size_t{17}, size_t{1}, size_t{12}}) {
    prompts.emplace_back(all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(count, all.size())));
  }
  const auto texts = [&](DeviceModel& runner) {
    auto scheduler = engine::Scheduler::create(*runner.runner(), {.vocab_size = runner.config().vocab_size});
    EXPECT_TRUE(scheduler) << scheduler.error().message();
    std::vector<Tokens> out;
    for (const auto& stream : answer_together(**scheduler, prompts, kNew)) {
      EXPECT_FALSE(stream->error()) << stream->error()->message();
      out.push_back(stream->sequence());
    }
    EXPECT_TRUE((*scheduler)->check());
    return out;
  };
  const auto whole = load(device(), GetParam(), several);
  Parts parts = load_parts(several);
  ASSERT_TRUE(whole && parts.steps);
  const std::vector<Tokens> wanted = texts(*whole);
  EXPECT_EQ(texts(parts.last()), wanted);
  EXPECT_EQ(texts(parts.last()), wanted);  // prompts that are cached now
}

TEST_P(Split, SavedTextsGoOnInPartsAndOnOneDevice) {
  const auto whole = load(device(), GetParam(), options());
  Parts parts = load_parts(options());
  ASSERT_TRUE(whole && parts.steps);
  Tokens text = prompt(), held, held_by_parts;
  text.resize(std::min<size_t>(text.size(), kCtxLen - 2 * kNew - 2));
  const Generation begun = answer(parts.last(), text, held_by_parts);
  model::SequenceRunner& split = *parts.last().runner();
  const uint32_t count = split.continues_from(static_cast<uint32_t>(held_by_parts.size()));
  auto saved = gpu::run_to_completion(device(), split.save(count));
  ASSERT_TRUE(saved) << saved.error().message();
  const Result<void> restored = gpu::run_to_completion(device(), whole->runner()->restore(count, *saved));
  ASSERT_TRUE(restored) << restored.error().message();
  auto again = gpu::run_to_completion(device(), whole->runner()->save(count));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, *saved);

  text.insert(text.end(), begun.tokens.begin(), begun.tokens.end());
  held = held_by_parts = Tokens(held_by_parts.begin(), held_by_parts.begin() + count);
  const Generation wanted = answer(*whole, text, held);
  Tokens none;
  answer(parts.last(), {1, 2, 1}, none);  // another text
  const Result<void> back = gpu::run_to_completion(device(), split.restore(count, *saved));
  ASSERT_TRUE(back) << back.error().message();
  expect_same(answer(parts.last(), text, held_by_parts), wanted);
  saved->pop_back();
  const Result<void> cut = gpu::run_to_completion(device(), split.restore(count, *saved));
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message().find("this model asks for"), std::string::npos);
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  const fs::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.filename().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Split, testing::ValuesIn(folders()), case_name);

}  // namespace
}  // namespace doppler
