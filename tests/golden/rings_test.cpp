// Layers that see a window keep a ring of positions. A model must answer as with caches of the whole context: bit for
// bit if a prompt goes round the ring several times, token for token if the model generates, and if a text goes back or
// comes out of a file. Every sixth layer of gemma3 sees everything, the others 16 positions; rings for chunks of 8 hold
// 32 positions.
#include <gtest/gtest.h>

#include "golden_helpers.h"
#include "many_answers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

using Tokens = std::vector<uint32_t>;
using kernels::CacheFormat;

constexpr uint32_t kChunk = 8, kCtxLen = 128, kNew = 20;
constexpr uint32_t kManyCtxLen = 1024;  // pools of windows take less

class Rings : public testing::TestWithParam<CacheFormat> {
 protected:
  void SetUp() override {
    const char* home = std::getenv("DOPPLER_GOLDEN_DIR");
    folder_ = std::string(home && *home ? home : GOLDEN_DIR) + "/families_gemma3/gemma3";
    const Tokens some = read_references(folder_).get<uint32_t>("prompt_b");
    while (text_.size() < 80) text_.insert(text_.end(), some.begin(), some.end());
    text_.resize(80);
  }

  std::unique_ptr<model::DeviceModel> load(bool rings, bool all_logits = false, uint32_t max_sequences = 0) {
    auto files = formats::open_file_set(folder_);
    EXPECT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto runner = gpu::run_to_completion(
        device(), model::DeviceModel::load(device(), *checkpoint,
                                           {.policy = *kernels::make_policy("exact"),
                                            .ctx_len = max_sequences == 0 ? kCtxLen : kManyCtxLen,
                                            .chunk = kChunk,
                                            .cache_format = GetParam(),
                                            .all_logits = all_logits,
                                            .rings = rings,
                                            .max_sequences = max_sequences,
                                            .block_len = 8},
                                           {}));
    EXPECT_TRUE(runner) << runner.error().message();
    return runner ? std::move(*runner) : nullptr;
  }

  std::vector<float> logits(bool rings) {
    const auto runner = load(rings, true);
    std::vector<float> all;
    for (uint32_t at = 0; runner && at < text_.size(); at += kChunk) {
      auto rows = gpu::run_to_completion(device(), runner->logits(at, std::span(text_).subspan(at, kChunk)));
      EXPECT_TRUE(rows) << rows.error().message();
      if (!rows) break;
      all.insert(all.end(), rows->logits.begin(), rows->logits.end());
    }
    return all;
  }

  struct Answer {
    Tokens tokens;
    uint32_t cached = 0;  // tokens of the prompt that were not evaluated
  };
  Answer answer(model::DeviceModel& runner, const Tokens& prompt, Tokens& cached_tokens) {
    GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = kNew;
    options.batch = 4;
    const Generation result = one_answer(runner, prompt, options, cached_tokens);
    return {Tokens(result.tokens.begin(), result.tokens.end()), result.timings.cached_tokens};
  }
  Answer fresh(model::DeviceModel& runner, const Tokens& prompt) {
    Tokens none;
    return answer(runner, prompt, none);
  }
  Tokens first(size_t count) const { return {text_.begin(), text_.begin() + static_cast<ptrdiff_t>(count)}; }

  std::string folder_;
  Tokens text_;
};

Tokens joined(Tokens text, const Tokens& more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

TEST_P(Rings, SayWhatWholeCachesSay) {
  const std::vector<float> wanted = logits(false), got = logits(true);
  EXPECT_EQ(got, wanted);  // 80 positions: the ring's end is passed twice
  const auto whole = load(false), ring = load(true);
  ASSERT_TRUE(whole && ring);
  EXPECT_LT(ring->memory().cache_bytes, whole->memory().cache_bytes / 2);
  EXPECT_EQ(fresh(*ring, first(45)).tokens, fresh(*whole, first(45)).tokens);
}

// The host's knowledge of rings, whatever their format.
class RingsOfF32 : public Rings {};

// A ring of 32 positions has the whole window of 16 for each of its last 17 positions.
TEST_P(RingsOfF32, ATextGoesBackAsFarAsItsWindowIsHeld) {
  const auto runner = load(true), other = load(true);
  ASSERT_TRUE(runner && other);
  const Tokens all = joined(text_, fresh(*other, text_).tokens);
  const auto held = static_cast<uint32_t>(all.size()) - 1;  // the last token was chosen, not evaluated
  for (const auto& [kept, cached_of_it] :
       {std::pair{held, held}, {held - 9, held - 9}, {held - 40, 0u}, {9u, 0u}}) {
    Tokens cached;
    answer(*runner, text_, cached);
    const Tokens text = joined(Tokens(all.begin(), all.begin() + kept), {7, 9});
    const Answer got = answer(*runner, text, cached);
    EXPECT_EQ(got.tokens, fresh(*other, text).tokens) << kept;
    EXPECT_EQ(got.cached, cached_of_it) << kept;
  }
}

TEST_P(RingsOfF32, ASavedTextGoesOnInRingsAndWholeCaches) {
  const auto whole = load(false), ring = load(true), other = load(true);
  ASSERT_TRUE(whole && ring && other);
  const Tokens all = joined(text_, fresh(*other, text_).tokens), longer = joined(all, {7, 9});
  const Tokens wanted = fresh(*other, longer).tokens;
  for (const auto& [from, to] : {std::pair{&ring, &other}, {&ring, &whole}, {&whole, &ring}}) {
    Tokens cached;
    answer(**from, text_, cached);
    const auto count = static_cast<uint32_t>(cached.size());
    ASSERT_EQ((*from)->runner()->continues_from(count), count);
    const auto saved = gpu::run_to_completion(device(), (*from)->runner()->save(count));
    ASSERT_TRUE(saved) << saved.error().message();
    EXPECT_EQ(model::KvCache::saved_positions(*saved), count);
    const auto restored = gpu::run_to_completion(device(), (*to)->runner()->restore(count, *saved));
    ASSERT_TRUE(restored) << restored.error().message();
    const Answer got = answer(**to, longer, cached);
    EXPECT_EQ(got.tokens, wanted);
    EXPECT_EQ(got.cached, count);
    EXPECT_EQ((*to)->runner()->continues_from(9), 0u);  // that window is gone
  }
}

class ManyWindows : public Rings {};

// Blocks of a pool of their own, given back as the windows pass them, and found again after a text that goes on.
TEST_P(ManyWindows, EachOfManySequencesIsAnsweredAsAlone) {
  const auto alone = load(false), whole = load(false, false, 3), runner = load(true, false, 3);
  ASSERT_TRUE(alone && whole && runner);
  EXPECT_LT(runner->memory().cache_bytes, whole->memory().cache_bytes * 2 / 3);
  auto scheduler =
      engine::Scheduler::create(*runner->sequences(), {.vocab_size = runner->config().vocab_size});
  ASSERT_TRUE(scheduler) << scheduler.error().message();
  const Tokens more = joined(joined(text_, fresh(*alone, text_).tokens), {7, 9});
  const auto expect_alone = [&](const std::vector<Tokens>& prompts, uint32_t cached) {
    const auto streams = answer_together(**scheduler, prompts, kNew);
    ASSERT_EQ(streams.size(), prompts.size());
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_EQ(streams[i]->take(), fresh(*alone, prompts[i]).tokens) << i;
      EXPECT_GE(streams[i]->timings().cached_tokens, cached) << i;
    }
  };
  expect_alone({first(45), text_, joined({3}, first(60)), first(9)}, 0);
  expect_alone({more, joined(text_, {5})}, 80);  // ten whole blocks of text_
}

INSTANTIATE_TEST_SUITE_P(Caches, ManyWindows, testing::Values(CacheFormat::kF32));
INSTANTIATE_TEST_SUITE_P(Caches, Rings, testing::Values(CacheFormat::kF32, CacheFormat::kQ8_0),
                         [](const auto& of) { return kernels::cache_format_name(of.param); });
INSTANTIATE_TEST_SUITE_P(Caches, RingsOfF32, testing::Values(CacheFormat::kF32));

}  // namespace
}  // namespace doppler
