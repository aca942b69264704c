// Sequences that grow past the end of the plans of short contexts, kShortKeysOfRows: each goes on as it does by itself.
// A large GPU has those plans (attention_many_test says which), a CPU none.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "golden_cases.h"
#include "golden_helpers.h"
#include "kernels/attention/attention.h"
#include "kernels/common/step_state.h"
#include "model/device_model.h"

namespace doppler {
namespace {

// 20 sequences are steps of 32 rows, which have plans of short contexts with the model's 4 heads; one has none.
constexpr uint32_t kTogether = 20, kSlots = 32, kBlockLen = 32, kPiece = 256, kNew = 40;
constexpr uint32_t kPrompt = kernels::kShortKeysOfRows - kNew / 2, kCtx = kernels::kShortKeysOfRows + 64;

class LongSequences : public testing::Test {
 protected:
  void SetUp() override {
    if (device().caps().type == gpu::AdapterType::kCpu)
      GTEST_SKIP() << "a CPU has no plans of short contexts";
    auto files = formats::open_file_set(golden_dir() + "/families_llama/llama");
    ASSERT_TRUE(files) << files.error().message();
    const auto checkpoint = open_golden(std::move(*files));
    auto runner =
        gpu::run_to_completion(device(), model::DeviceModel::load(device(), *checkpoint,
                                                                  {.policy = *kernels::make_policy("fast"),
                                                                   .ctx_len = kCtx,
                                                                   .chunk = kPiece,
                                                                   .max_sequences = kSlots,
                                                                   .block_len = kBlockLen},
                                                                  {}));
    ASSERT_TRUE(runner) << runner.error().message();
    runner_ = std::move(*runner);
  }

  model::SequencePlans& plans() { return *runner_->sequences(); }

  // The prompt of a number.
  std::vector<uint32_t> prompt(uint32_t number) {
    std::mt19937 random(number);
    std::vector<uint32_t> text(kPrompt);
    for (uint32_t& token : text) token = static_cast<uint32_t>(random() % runner_->config().vocab_size);
    return text;
  }

  // Waits for a ticket and gives each slot its tokens.
  void take(const Result<model::Ticket>& ticket, std::vector<std::vector<uint32_t>>& chosen) {
    ASSERT_TRUE(ticket) << ticket.error().message();
    auto tokens = gpu::run_to_completion(device(), plans().tokens(*ticket));
    ASSERT_TRUE(tokens) << tokens.error().message();
    for (size_t i = 0; i < tokens->size(); ++i) {
      if ((*tokens)[i] != kernels::kNoToken) chosen[i % plans().max_sequences()].push_back((*tokens)[i]);
    }
  }

  // The answers of prompts `first` to `first + count - 1`, decoded together.
  std::vector<std::vector<uint32_t>> answers(uint32_t first, uint32_t count) {
    std::vector<std::vector<uint32_t>> chosen(kSlots);
    std::vector<uint32_t> decoding(count);
    std::iota(decoding.begin(), decoding.end(), 0);
    for (const uint32_t slot : decoding) {
      const std::vector<uint32_t> text = prompt(first + slot);
      std::vector<uint32_t> blocks(kCtx / kBlockLen);
      std::iota(blocks.begin(), blocks.end(), slot * kCtx / kBlockLen);
      EXPECT_TRUE(plans().begin(slot, {.max_tokens = kNew}, {}));
      EXPECT_TRUE(plans().map(slot, 0, blocks));
      for (uint32_t pos = 0; pos < kPrompt; pos += kPiece) {
        const uint32_t length = std::min(kPiece, kPrompt - pos);
        const model::Piece piece{.slot = slot,
                                 .pos = pos,
                                 .tokens = std::span(text).subspan(pos, length),
                                 .sample = pos + length == kPrompt};
        take(plans().step({}, std::span(&piece, 1)), chosen);
      }
    }
    while (chosen[0].size() < kNew && !HasFailure()) take(plans().decode(decoding, {.steps = 8}), chosen);
    chosen.resize(count);
    return chosen;
  }

 private:
  std::unique_ptr<model::DeviceModel> runner_;
};

TEST_F(LongSequences, GoOnAsEachDoesAlone) {
  EXPECT_EQ(plans().decode_plan(true, kTogether, kernels::kShortKeysOfRows).name, "many.32.short.greedy");
  EXPECT_EQ(plans().decode_plan(true, kTogether, kernels::kShortKeysOfRows + 1).name, "many.32.greedy");
  const auto together = answers(0, kTogether);
  for (uint32_t i = 0; i < kTogether; ++i) {
    EXPECT_EQ(together[i].size(), kNew);
    EXPECT_EQ(answers(i, 1)[0], together[i]) << "sequence " << i;
  }
}

}  // namespace
}  // namespace doppler
