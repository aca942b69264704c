// The choice of a token for many sequences: every row of a step gets the token that its sequence would get by itself,
// from the same logits, params, biases, counts, counter and key.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/sample/sample_oracle.h"
#include "kernels/sample/variants.h"
#include "kernels/step/step.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

// Kernels are compiled for a vocabulary, which takes longer than running them: one of a segment and one of several
// serve all tests of this program.
constexpr uint32_t kFew = 40, kMany = 5003;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A sequence's end of a step, by itself or beside others.
struct Ask {
  SampleInput in;
  uint64_t seed = 1;
  uint32_t generated = 0;
};

std::vector<uint32_t> bias_words(const Ask& ask) {
  std::vector<uint32_t> words(kMaxLogitBias * 2, kPoison);
  for (size_t i = 0; i < ask.in.bias.size(); ++i) {
    words[2 * i] = ask.in.bias[i].first;
    words[2 * i + 1] = std::bit_cast<uint32_t>(ask.in.bias[i].second);
  }
  return words;
}

std::vector<uint8_t> params_bytes(const SampleParams& params) {
  std::vector<uint8_t> bytes(kSampleParamsStride);
  std::memcpy(bytes.data(), &params, sizeof(params));
  return bytes;
}

template <class T>
void append(std::vector<T>& to, std::vector<T> values, size_t count = 0) {
  if (count != 0) values.resize(count);
  to.insert(to.end(), values.begin(), values.end());
}

// The tokens of `rows` rows of one sequence, whose logits lie one after the other. Nothing: the variant does not run
// here.
std::vector<uint32_t> choose_alone(const Policy& policy, const Ask& ask, bool greedy, uint32_t rows = 1) {
  KernelRun run(policy, rows);
  const auto vocab = static_cast<uint32_t>(ask.in.logits.size() / rows);
  std::vector<uint32_t> counts, bias;  // of each row, as all else that it reads
  std::vector<uint8_t> params;
  for (uint32_t row = 0; row < rows; ++row) {
    append(counts, ask.in.counts, vocab);
    append(bias, bias_words(ask));
    append(params, params_bytes(ask.in.params));
  }
  const TensorView token = run.output(4ull * rows);
  const Sample op{.logits = run.inout(ask.in.logits),
                  .params = run.input(params),
                  .bias = run.input(bias),
                  .counts = run.input(counts),
                  .token = token,
                  .vocab_size = vocab,
                  .rows = rows,
                  .greedy = greedy,
                  .softcap = ask.in.softcap,
                  .logit_scale = ask.in.logit_scale};
  run.state.generated = ask.generated;
  run.state.seed_low = static_cast<uint32_t>(ask.seed);
  run.state.seed_high = static_cast<uint32_t>(ask.seed >> 32);
  if (!run.record([&](Context& ctx) { return record(ctx, op); })) return {};
  run.replay();
  return run.read<uint32_t>(token, rows);
}

struct Company {
  uint32_t sequences = 7;
  uint32_t max_rows = 7;        // of the plan
  std::vector<uint32_t> slots;  // of each row that chooses a token
  std::vector<Ask> asks;        // one for each such row
  bool greedy = false;
};

std::vector<uint32_t> choose_together(const Policy& policy, const Company& company) {
  KernelRun run(policy, company.max_rows);
  const Ask& any = company.asks[0];
  const auto vocab = static_cast<uint32_t>(any.in.logits.size());
  TablesImage image({.sequences = company.sequences, .rows = 100, .blocks = 3, .block_len = 8});
  image.state().rows = 90;
  image.sampled_state().rows = static_cast<uint32_t>(company.asks.size());
  std::vector<float> logits;
  std::vector<uint8_t> params(company.sequences * kSampleParamsStride, 0xFF);
  std::vector<uint32_t> bias(company.sequences * kMaxLogitBias * 2, kPoison);
  std::vector<uint32_t> counts(company.sequences * vocab, 3);
  for (uint32_t i = 0; i < company.asks.size(); ++i) {
    const Ask& ask = company.asks[i];
    const uint32_t slot = company.slots[i];
    image.sampled(i) = {slot, 80 + i};
    image.record(slot).generated = ask.generated;
    image.record(slot).seed_low = static_cast<uint32_t>(ask.seed);
    image.record(slot).seed_high = static_cast<uint32_t>(ask.seed >> 32);
    append(logits, ask.in.logits);
    std::ranges::copy(params_bytes(ask.in.params), params.begin() + slot * kSampleParamsStride);
    std::ranges::copy(bias_words(ask), bias.begin() + slot * kMaxLogitBias * 2);
    std::vector<uint32_t> counted = ask.in.counts;
    counted.resize(vocab);
    std::ranges::copy(counted, counts.begin() + slot * vocab);
  }
  logits.resize(company.sequences * vocab, 1e9f);
  const TensorView state = run.input(image.bytes);
  const TensorView token = run.output(company.sequences * 4);
  const Sample op{.logits = run.inout(logits),
                  .params = run.input(params),
                  .bias = run.input(bias),
                  .counts = run.input(counts),
                  .token = token,
                  .vocab_size = vocab,
                  .greedy = company.greedy,
                  .softcap = any.in.softcap,
                  .logit_scale = any.in.logit_scale};
  const bool ready = run.record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, op);
  });
  if (!ready) return {};
  run.replay(static_cast<uint32_t>(company.asks.size()));
  std::vector<uint32_t> tokens = run.read<uint32_t>(token, company.sequences);
  for (size_t i = company.asks.size(); i < tokens.size(); ++i) EXPECT_EQ(tokens[i], kPoison) << i;
  tokens.resize(company.asks.size());
  return tokens;
}

// Requests that differ in everything a request may say.
std::vector<Ask> different_asks(uint32_t vocab, uint32_t count) {
  std::vector<Ask> asks;
  for (uint32_t i = 0; i < count; ++i) {
    Ask ask{.in = {.logits = random_floats(vocab, 50 + i, 3), .params = {}},
            .seed = 0x123456789ull * (i + 1),
            .generated = 11 * i};
    for (float& l : ask.in.logits) l = std::fmin(l, 12.0f);
    SampleParams& p = ask.in.params;
    if (i % 3 == 1) p = {.temperature = 2, .top_p = 1, .min_p = 0.01f, .top_k = 0};
    if (i % 3 == 2) p = {.temperature = 5, .top_p = 0.9f, .top_k = 300, .repeat_penalty = 1.5f};
    if (i % 2 == 1) {
      ask.in.bias = {{i, 11.0f}, {vocab - 1, -kInf}, {3 * i, 12.0f}};
      p.bias_count = 3;
    }
    ask.in.counts.resize(vocab);
    for (uint32_t id = 0; id < vocab; id += i + 2) ask.in.counts[id] = id % 5;
    asks.push_back(std::move(ask));
  }
  return asks;
}

TEST(SampleMany, EachDrawsAsItWouldAlone) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    for (const uint32_t vocab : {kFew, kMany}) {
      for (const uint32_t max_rows : {7u, 90u}) {  // of a decode plan, and of one with pieces of prompts
        SCOPED_TRACE(format_text("%u tokens, %u rows", vocab, max_rows));
        Company company{.max_rows = max_rows, .slots = {6, 2, 0, 5, 1}, .asks = different_asks(vocab, 5)};
        const std::vector<uint32_t> got = choose_together(policy, company);
        for (size_t i = 0; i < got.size(); ++i) {
          SCOPED_TRACE(i);
          const Ask& ask = company.asks[i];
          const uint32_t random =
              philox4x32_10({ask.generated, 0, 0, 0},
                            {static_cast<uint32_t>(ask.seed), static_cast<uint32_t>(ask.seed >> 32)})[0];
          EXPECT_EQ(got[i], choose_alone(policy, ask, false).at(0));
          EXPECT_EQ(got[i], sample_oracle(ask.in).draw(random));
        }
      }
    }
  });
}

// A step that checks a draft: the second row draws what the step after this one would, from the same params and counts.
TEST(SampleRows, EachDrawsAsTheNextChoiceWould) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    for (const uint32_t vocab : {kFew, kMany}) {
      for (const Ask& ask : different_asks(vocab, 4)) {
        SCOPED_TRACE(format_text("%u tokens, after %u", vocab, ask.generated));
        Ask second = ask, both = ask;
        second.in.logits = random_floats(vocab, 90 + ask.generated, 3);
        second.generated = ask.generated + 1;
        append(both.in.logits, second.in.logits);
        const std::vector<uint32_t> got = choose_alone(policy, both, false, 2);
        if (got.empty()) continue;
        EXPECT_EQ(got[0], choose_alone(policy, ask, false)[0]);
        EXPECT_EQ(got[1], choose_alone(policy, second, false)[0]);
        both.in.params.greedy = 1;
        const uint32_t best =
            static_cast<uint32_t>(std::ranges::max_element(second.in.logits) - second.in.logits.begin());
        EXPECT_EQ(choose_alone(policy, both, false, 2)[1], best);
      }
    }
  });
}

// Rows with drafts of several sequences: each draws as its sequence would so many choices later.
TEST(SampleDrafts, EachDrawsAsALaterChoiceOfItsSequence) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    constexpr uint32_t kSlots[] = {6, 6, 6, 2, 0, 0}, kMostRows = 8;
    std::vector<Ask> asks = different_asks(kMany, std::size(kSlots));
    TablesImage image({.sequences = 7, .rows = 100, .blocks = 3, .block_len = 8});
    std::vector<float> logits;
    std::vector<uint8_t> params;
    std::vector<uint32_t> bias, counts;
    for (uint32_t row = 0; row < asks.size(); ++row) {
      const uint32_t slot = kSlots[row],
                     drafts = row > 0 && kSlots[row - 1] == slot ? row - (slot == 6 ? 0 : 4) : 0;
      SequenceRecord& record = image.record(slot);
      if (drafts == 0) {
        record = {.pos = 20 + slot,
                  .generated = asks[row].generated,
                  .seed_low = static_cast<uint32_t>(asks[row].seed),
                  .seed_high = static_cast<uint32_t>(asks[row].seed >> 32)};
      } else {
        asks[row].seed = asks[row - drafts].seed;
        asks[row].generated = record.generated + drafts;
      }
      image.row(row) = {slot, record.pos + drafts};
      image.sampled(row) = {slot, row};
      append(logits, asks[row].in.logits);
      append(params, params_bytes(asks[row].in.params));
      append(bias, bias_words(asks[row]));
      append(counts, asks[row].in.counts, kMany);
    }
    image.state().rows = image.sampled_state().rows = std::size(kSlots);
    logits.resize(kMostRows * kMany, 1e9f);
    params.resize(kMostRows * kSampleParamsStride);
    bias.resize(kMostRows * kMaxLogitBias * 2);
    counts.resize(kMostRows * kMany);
    KernelRun run(policy, kMostRows);
    const TensorView state = run.input(image.bytes), token = run.output(kMostRows * 4);
    const Sample op{.logits = run.inout(logits),
                    .params = run.input(params),
                    .bias = run.input(bias),
                    .counts = run.input(counts),
                    .token = token,
                    .vocab_size = kMany,
                    .rows = kMostRows};
    if (!run.record([&](Context& ctx) {
          Context many = with_tables(ctx, image, state);
          return record(many, op);
        }))
      return;
    run.replay(std::size(kSlots));
    const auto got = run.read<uint32_t>(token, kMostRows);
    for (size_t row = 0; row < asks.size(); ++row)
      EXPECT_EQ(got[row], choose_alone(policy, asks[row], false)[0]) << row;
    EXPECT_EQ(got[std::size(kSlots)], kPoison);
  });
}

TEST(SampleMany, RowsPastTheSampledOnesAreLeft) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    Company company{.slots = {3}, .asks = different_asks(kMany, 1)};
    const std::vector<uint32_t> got = choose_together(policy, company);  // which checks the rest
    EXPECT_EQ(got, choose_alone(policy, company.asks[0], false));
  });
}

TEST(SampleMany, AllSlotsOfTheLargestStep) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    Company company{
        .sequences = kMaxSequences, .max_rows = kMaxSequences, .asks = different_asks(kMany, kMaxSequences)};
    for (uint32_t i = 0; i < kMaxSequences; ++i) company.slots.push_back(kMaxSequences - 1 - i);
    const std::vector<uint32_t> got = choose_together(policy, company);
    for (size_t i = 0; i < got.size(); i += 13)
      EXPECT_EQ(got[i], choose_alone(policy, company.asks[i], false)[0]);
  });
}

// Logits whose greedy choice is hard to find with floats: infinities, NaN, ties that softcap and clamps would make.
std::vector<Ask> greedy_asks(uint32_t vocab) {
  std::vector<Ask> asks = different_asks(vocab, 6);
  asks[0].in.logits[17] = 100;
  asks[1].in.logits[30] = kInf;
  asks[1].in.logits[20] = 3e38f;
  asks[2].in.logits[20] = 2e30f;
  asks[2].in.logits[30] = 3e30f;
  asks[3].in.logits.assign(vocab, kNan);
  asks[4].in.logits.assign(vocab, -kInf);
  asks[4].in.logits[0] = kNan;
  asks[4].in.logits[33] = -3e38f;
  asks[5].in.logits[35] = asks[5].in.logits[21] = 50;
  for (Ask& ask : asks) ask.in.softcap = 2;
  return asks;
}
const std::vector<uint32_t> kGreedyTokens = {17, kNotFinite, 30, kNotFinite, 33, 21};

TEST(SampleMany, GreedyPlansChooseTheHighestOfEachRow) {
  for_each_variant("argmax", argmax_variants(), [](const Policy& policy) {
    for (const uint32_t vocab : {kFew, kMany}) {
      Company company{.slots = {6, 2, 0, 5, 1, 3}, .asks = greedy_asks(vocab), .greedy = true};
      const std::vector<uint32_t> got = choose_together(policy, company);
      EXPECT_EQ(got, kGreedyTokens) << vocab;
    }
  });
}

TEST(SampleMany, GreedyRequestsBesideSampledOnesChooseAsTheGreedyPlan) {
  for_each_variant("sample", sample_variants(), [](const Policy& policy) {
    for (const uint32_t vocab : {kFew, kMany}) {
      Company company{.slots = {6, 2, 0, 5, 1, 3}, .asks = greedy_asks(vocab)};
      for (Ask& ask : company.asks) ask.in.params.greedy = 1;
      EXPECT_EQ(choose_together(policy, company), kGreedyTokens) << vocab;
      company.asks[1] = different_asks(vocab, 2)[1];
      company.asks[1].in.softcap = 2;
      const std::vector<uint32_t> mixed = choose_together(policy, company);
      EXPECT_EQ(mixed[1], choose_alone(policy, company.asks[1], false)[0]);
      EXPECT_EQ(mixed[5], 21u);
      EXPECT_EQ(choose_alone(policy, company.asks[4], false)[0], 33u);
    }
  });
}

TEST(SampleMany, TheBestOfTilesHaveARowEach) {
  for_each_variant("argmax", argmax_variants(), [](const Policy& policy) {
    KernelRun run(policy, 4);
    TablesImage image({.sequences = 4, .rows = 4});
    image.sampled_state().rows = 2;
    const TensorView state = run.input(image.bytes);
    const TensorView token = run.output(4 * 4);
    std::vector<uint32_t> pairs(4 * 3 * 2, 0x80000000u);
    pairs[1] = 5, pairs[2] = 0xC0000000u, pairs[3] = 7, pairs[5] = 9;
    pairs[7] = 50, pairs[9] = 41, pairs[11] = 40;
    const Sample op{
        .best = run.input(pairs), .best_count = 3, .token = token, .vocab_size = 100, .greedy = true};
    if (!run.record([&](Context& ctx) {
          Context many = with_tables(ctx, image, state);
          return record(many, op);
        })) {
      return;
    }
    run.replay(2);
    EXPECT_EQ(run.read<uint32_t>(token, 4), (std::vector<uint32_t>{7, 40, kPoison, kPoison}));
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
