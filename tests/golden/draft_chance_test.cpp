// Drafts do not change the chances of a drawn text, also in the lane fast. There steps of several rows round in
// another way than steps of one row, so the tokens of one seed may differ. Texts of 800 seeds with drafts and of 800
// other seeds without are compared by Pearson's chi-squared test of two samples.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "formats/test_helpers.h"
#include "golden_cases.h"
#include "golden_helpers.h"
#include "model/device_model.h"
#include "one_answer.h"

namespace doppler {
namespace {

using formats::must;

using Tokens = std::vector<uint32_t>;
using Counts = std::map<Tokens, std::array<double, 2>>;  // by text: without drafts, with drafts

constexpr uint64_t kSeeds = 800;
constexpr uint32_t kSlots = 16, kGuesses = 24;
constexpr uint32_t kTokens = 8, kCounted = 4;  // of a text
constexpr double kLeastExpected = 5;           // texts that are rarer share a cell
constexpr double kOneOf1000 = 3.0902;          // standard normal quantile

// The value that chi-squared exceeds once in 1,000 (Wilson and Hilferty 1931).
double chi_squared_bound(double freedom) {
  const double ninth = 2 / (9 * freedom);
  return freedom * std::pow(1 - ninth + kOneOf1000 * std::sqrt(ninth), 3);
}

struct Statistic {
  double value = 0, freedom = 0;
};
Statistic chi_squared(const Counts& counts) {
  std::vector<std::array<double, 2>> cells = {{0, 0}};  // the first has the rare texts
  for (const auto& [text, count] : counts) {
    if ((count[0] + count[1]) / 2 < kLeastExpected) {
      cells[0][0] += count[0];
      cells[0][1] += count[1];
    } else {
      cells.push_back(count);
    }
  }
  Statistic out{.freedom = static_cast<double>(cells.size()) - 1};
  for (const auto& [without, with] : cells) {
    if (without + with > 0) out.value += (without - with) * (without - with) / (without + with);
  }
  return out;
}

class DraftChances : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<model::DeviceModel> load(const formats::Checkpoint& checkpoint) {
    return must(gpu::run_to_completion(device(),
                                       model::DeviceModel::load(device(), checkpoint,
                                                                {.policy = must(kernels::make_policy("fast")),
                                                                 .ctx_len = 64,
                                                                 .chunk = 128,  // the prompts of all slots
                                                                 .max_sequences = kSlots},
                                                                {})));
  }

  // Answers all seeds from `first` on together, and counts the texts' first tokens.
  model::DraftTally count(model::DeviceModel& runner, const Tokens& prompt, uint64_t first, uint64_t seeds,
                          bool with, Counts& counts) {
    const uint32_t vocab_size = runner.config().vocab_size;
    const auto scheduler = must(engine::Scheduler::create(*runner.runner(), {.vocab_size = vocab_size}));
    std::vector<std::shared_ptr<engine::Stream>> streams;
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
      GenerateOptions options{.max_tokens = kTokens, .ignore_eos = true, .draft_rows = 4};
      options.sampling.temperature = 0.7f;
      options.sampling.top_k = 3;
      options.sampling.seed = seed;
      engine::StreamAnswer answer(nullptr,
                                  {.vocab_size = vocab_size,
                                   .ctx_len = runner.ctx_len(),
                                   .stop_tokens = {},
                                   .drafting = with ? model::Drafting::kLookup : model::Drafting::kOff},
                                  prompt, options);
      auto request = must(answer.next_request({}));
      request.settings.prediction = guesses_;
      streams.push_back(must(scheduler->submit(std::move(request))));
    }
    while (must(gpu::run_to_completion(device(), scheduler->turn()))) {
    }
    model::DraftTally tally;
    for (const auto& stream : streams) {
      Tokens text = stream->take();
      EXPECT_EQ(text.size(), kTokens);
      if (!with && guesses_.size() < kGuesses * (prompt.size() + kTokens)) {
        guesses_.insert(guesses_.end(), prompt.begin(), prompt.end());
        guesses_.insert(guesses_.end(), text.begin(), text.end());
      }
      text.resize(kCounted);
      counts[text][with] += 1;
      tally.drafted += stream->timings().drafts.drafted;
      tally.accepted += stream->timings().drafts.accepted;
    }
    return tally;
  }

  Tokens guesses_;  // some texts that were drawn without drafts
};

TEST_P(DraftChances, AreThoseWithoutDrafts) {
  const std::string folder = golden_dir() + "/" + GetParam();
  const auto checkpoint = open_golden(must(formats::open_file_set(folder)));
  Tokens prompt = read_references(folder).get<uint32_t>("prompt_a");
  prompt.resize(6);
  const auto runner = load(*checkpoint);
  Counts counts;
  count(*runner, prompt, 0, kSeeds, false, counts);
  for (uint64_t before = 0, made = 1; before != made;) {  // plans are made beside the first answers
    before = made;
    Counts of_none;
    count(*runner, prompt, 0, kSlots, true, of_none);
    made = runner->draft_plans().objects_created();
  }
  const model::DraftTally tally = count(*runner, prompt, kSeeds, kSeeds, true, counts);
  const Statistic got = chi_squared(counts);
  EXPECT_GT(got.freedom, 8);
  EXPECT_LT(got.value, chi_squared_bound(got.freedom)) << got.freedom << " degrees of freedom";
  EXPECT_GT(tally.accepted, kSeeds / 8);
  EXPECT_LT(tally.accepted, tally.drafted);
}

INSTANTIATE_TEST_SUITE_P(Models, DraftChances,
                         testing::Values("families_llama/llama", "families_gemma3/gemma3"),
                         [](const auto& of) {
                           const std::string name = of.param;
                           return name.substr(name.find('/') + 1);
                         });

}  // namespace
}  // namespace doppler
