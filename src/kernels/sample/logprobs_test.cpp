// Log-probabilities in double precision: of the chosen token and of the best ones, for one sequence and several,
// whatever else the request asks of the choice.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/sample/sample.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kSoftcap = 20, kScale = 0.5f;

struct Ask {
  std::vector<float> logits;
  SampleParams params;
};

void expect_entry(const LogProbEntry& got, const Ask& ask, uint32_t token) {
  std::vector<double> l;
  for (const float logit : ask.logits) {
    const bool excluded = std::isnan(logit) || logit == -kInf;
    l.push_back(excluded ? -1e30 : kSoftcap * std::tanh(std::fmin(logit, 1e30f) * kScale / kSoftcap));
  }
  const double highest = *std::ranges::max_element(l);
  double sum = 0;
  for (const double value : l) sum += std::exp(value - highest);
  const auto logprob = [&](uint32_t id) { return l[id] < -1e29 ? -1e30 : l[id] - highest - std::log(sum); };
  const auto near = [](double want) { return want < -1e29 ? 1e24 : 1e-5; };
  ASSERT_LT(token, l.size());
  EXPECT_NEAR(got.chosen, logprob(token), near(logprob(token)));
  ASSERT_EQ(got.count, std::min<size_t>(ask.params.logprobs - 1, l.size()));
  std::vector<uint32_t> ids(l.size());
  std::iota(ids.begin(), ids.end(), 0u);
  std::ranges::stable_sort(ids, [&](uint32_t a, uint32_t b) { return l[a] > l[b]; });
  for (uint32_t i = 0; i < got.count; ++i) {
    SCOPED_TRACE(i);
    // Softcap in f32 may make ties or turn neighbours; nothing else may.
    if (got.best[i].token != ids[i]) {
      EXPECT_NEAR(logprob(got.best[i].token), logprob(ids[i]), 1e-5);
    }
    EXPECT_NEAR(got.best[i].logprob, logprob(got.best[i].token), near(logprob(ids[i])));
  }
}

std::vector<Ask> asks(uint32_t vocab) {
  std::vector<Ask> all;
  for (const uint32_t logprobs : {21u, 1u, 6u, 0u, 3u, 21u}) {
    Ask ask{.logits = random_floats(vocab, vocab + logprobs, 3)};
    ask.params.logprobs = logprobs;
    all.push_back(std::move(ask));
  }
  all[0].params.repeat_penalty = 3;  // which log-probabilities do not see
  all[2].params.greedy = 1;
  all[2].logits[3] = all[2].logits[vocab - 1] = 9;  // a tie: the lower id first
  all[4].params.temperature = 50;
  all[4].params.top_k = 0;
  all[5].logits.assign(vocab, -kInf);
  all[5].logits[vocab / 2] = 3;
  all[5].logits[1] = 1;
  return all;
}

std::vector<uint8_t> params_bytes(const SampleParams& params) {
  std::vector<uint8_t> bytes(kSampleParamsStride);
  std::memcpy(bytes.data(), &params, sizeof(params));
  return bytes;
}

TEST(LogProbs, OfOneSequenceStepByStep) {
  for (const uint32_t vocab : {40u, 5003u}) {
    for (const bool greedy : {false, true}) {
      KernelRun run;
      const TensorView logits = run.inout(std::vector<float>(vocab));
      const TensorView params = run.input(std::vector<uint8_t>(kSampleParamsStride));
      const TensorView token = run.output(4);
      const TensorView ring = run.output(kTokenRing * sizeof(LogProbEntry));
      const Sample op{.logits = logits,
                      .params = params,
                      .bias = run.input(std::vector<uint32_t>(2 * kMaxLogitBias)),
                      .counts = run.input(std::vector<uint32_t>(vocab, 1)),
                      .token = token,
                      .logprobs = ring,
                      .vocab_size = vocab,
                      .greedy = greedy,
                      .softcap = kSoftcap,
                      .logit_scale = kScale};
      ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
      run.state.ring_index = kTokenRing - 2;
      for (const Ask& ask : asks(vocab)) {
        SCOPED_TRACE(format_text("vocabulary %u, %u log-probabilities", vocab, ask.params.logprobs));
        run.overwrite(logits, ask.logits);
        run.overwrite(params, params_bytes(ask.params));
        run.replay();
        const auto entries = run.read<LogProbEntry>(ring, kTokenRing);
        const LogProbEntry& entry = entries[run.state.ring_index % kTokenRing];
        if (ask.params.logprobs == 0) {
          EXPECT_EQ(entry.count, kPoison);
        } else {
          expect_entry(entry, ask, run.read<uint32_t>(token, 1)[0]);
        }
        ++run.state.ring_index;  // as the step kernel does
      }
    }
  }
}

TEST(LogProbs, OfEachSlotThatAsks) {
  constexpr uint32_t kVocab = 5003, kSequences = 8;
  const std::vector<uint32_t> slots = {5, 0, 7, 2, 1, 4};
  const std::vector<Ask> all = asks(kVocab);
  KernelRun run(Policy{}, kSequences);
  TablesImage image({.sequences = kSequences, .rows = 20});
  image.state().ring_index = 3 * kStepRing + 9;
  image.sampled_state().rows = static_cast<uint32_t>(all.size());
  std::vector<float> logits;
  std::vector<uint8_t> params(kSequences * kSampleParamsStride);
  for (uint32_t i = 0; i < all.size(); ++i) {
    image.sampled(i) = {slots[i], i};
    logits.insert(logits.end(), all[i].logits.begin(), all[i].logits.end());
    std::ranges::copy(params_bytes(all[i].params), params.begin() + slots[i] * kSampleParamsStride);
  }
  logits.resize(kSequences * kVocab);
  const TensorView state = run.input(image.bytes);
  const TensorView token = run.output(kSequences * 4);
  const TensorView ring = run.output(kStepRing * kSequences * sizeof(LogProbEntry));
  const Sample op{.logits = run.inout(logits),
                  .params = run.input(params),
                  .bias = run.input(std::vector<uint32_t>(kSequences * 2 * kMaxLogitBias)),
                  .counts = run.input(std::vector<uint32_t>(kSequences * kVocab, 1)),
                  .token = token,
                  .logprobs = ring,
                  .vocab_size = kVocab,
                  .softcap = kSoftcap,
                  .logit_scale = kScale};
  ASSERT_TRUE(run.record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, op);
  }));
  run.replay(static_cast<uint32_t>(all.size()));
  const auto tokens = run.read<uint32_t>(token, kSequences);
  const auto entries = run.read<LogProbEntry>(ring, uint64_t{kStepRing} * kSequences);
  std::vector<bool> written(kSequences);
  for (uint32_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    if (all[i].params.logprobs == 0) continue;
    written[slots[i]] = true;
    expect_entry(entries[9 * kSequences + slots[i]], all[i], tokens[i]);
  }
  for (uint32_t at = 0; at < entries.size(); ++at) {
    const bool is_step = at / kSequences == 9;
    if (is_step && written[at % kSequences]) continue;
    ASSERT_EQ(entries[at].count, kPoison) << at;
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
