// Masks: a sequence with a mask gets the oracle's token of the remaining logits, others beside it that of all logits.
// The greedy choice of a plan with masks, and log-probabilities, which are those of the logits before.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sample/sample_oracle.h"
#include "kernels/testing/tables_image.h"

namespace doppler::kernels::testing {
namespace {

// As in logprobs_test.cpp, whose pipelines serve here too. Five segments, and a last word of eleven bits.
constexpr uint32_t kVocab = 5003, kSequences = 8;
constexpr float kSoftcap = 20, kScale = 0.5f;
constexpr uint32_t kRows = 4;

struct Ask {
  SampleInput in;
  std::vector<uint32_t> allowed;  // empty: no mask
};

// The oracle has no mask: what it leaves out is -infinity, which excludes.
uint32_t wanted(const Ask& ask, uint32_t random) {
  SampleInput in = ask.in;
  for (uint32_t token = 0; token < kVocab && !ask.allowed.empty(); ++token) {
    if (std::ranges::find(ask.allowed, token) == ask.allowed.end())
      in.logits[token] = -std::numeric_limits<float>::infinity();
  }
  if (in.params.greedy != 0)
    return static_cast<uint32_t>(std::ranges::max_element(in.logits) - in.logits.begin());
  return sample_oracle(in).draw(random);
}

TEST(Mask, EachSequenceChoosesAmongWhatItsOwnLeaves) {
  SampleParams drawn{.temperature = 1, .top_p = 1, .top_k = 0, .logprobs = 1};
  SampleParams greedy = drawn, few{.temperature = 0.7f, .top_p = 0.9f, .top_k = 20};
  greedy.greedy = 1;
  std::vector<Ask> asks(kRows);
  for (uint32_t i = 0; i < kRows; ++i) {
    asks[i].in = {.logits = random_floats(kVocab, 70 + i, 3),
                  .params = i == 1   ? greedy
                            : i == 3 ? few
                                     : drawn};
    asks[i].in.softcap = kSoftcap;
    asks[i].in.logit_scale = kScale;
  }
  for (uint32_t token = 7; token < kVocab; token += 31) asks[0].allowed.push_back(token);
  asks[1].allowed = {kVocab - 1, 1023, 1024, 31, 32};
  asks[3].allowed = {2047};  // and none for 2

  KernelRun run(Policy{}, kSequences);
  TablesImage image({.sequences = kSequences, .rows = 20});
  image.sampled_state().rows = kRows;
  const uint32_t words = mask_words(kVocab);
  std::vector<float> logits;
  std::vector<uint8_t> params(kSequences * kSampleParamsStride);
  std::vector<uint32_t> masks(kSequences * words, 0), random(kRows);
  // Rows in another order than slots.
  const uint32_t slots[kRows] = {2, 0, 3, 1};
  for (uint32_t row = 0; row < kRows; ++row) {
    const uint32_t slot = slots[row];
    const Ask& ask = asks[slot];
    image.sampled(row) = {slot, row};
    image.record(slot).generated = 11 + slot;
    image.record(slot).seed_low = 5 * slot;
    random[slot] = philox4x32_10({11 + slot, 0, 0, 0}, {5 * slot, 0})[0];
    logits.insert(logits.end(), ask.in.logits.begin(), ask.in.logits.end());
    std::memcpy(params.data() + slot * kSampleParamsStride, &ask.in.params, sizeof(SampleParams));
    // The bits count only if the first word is 1.
    masks[slot * words] = ask.allowed.empty() ? 0 : 1;
    for (const uint32_t token : ask.allowed) masks[slot * words + 1 + token / 32] |= 1u << token % 32;
  }
  logits.resize(kSequences * kVocab);
  const TensorView state = run.input(image.bytes);
  const TensorView token = run.output(kSequences * 4);
  const TensorView ring = run.output(uint64_t{kStepRing} * kSequences * sizeof(LogProbEntry));
  const Sample op{.logits = run.inout(logits),
                  .params = run.input(params),
                  .bias = run.input(std::vector<uint32_t>(kSequences * kMaxLogitBias * 2)),
                  .counts = run.input(std::vector<uint32_t>(kSequences * kVocab)),
                  .token = token,
                  .logprobs = ring,
                  .mask = run.input(masks),
                  .vocab_size = kVocab,
                  .softcap = kSoftcap,
                  .logit_scale = kScale};
  ASSERT_TRUE(run.record([&](Context& ctx) {
    Context many = with_tables(ctx, image, state);
    return record(many, op);
  }));
  run.replay(kRows);
  const std::vector<uint32_t> chosen = run.read<uint32_t>(token, kRows);
  const std::vector<LogProbEntry> entries = run.read<LogProbEntry>(ring, kSequences);
  for (uint32_t row = 0; row < kRows; ++row) {
    const Ask& ask = asks[slots[row]];
    EXPECT_EQ(chosen[row], wanted(ask, random[slots[row]])) << "slot " << slots[row];
    if (ask.in.params.logprobs == 0) continue;
    double sum = 0;
    const auto l = [&](uint32_t id) {
      return kSoftcap * std::tanh(ask.in.logits[id] * double{kScale} / kSoftcap);
    };
    for (uint32_t id = 0; id < kVocab; ++id) sum += std::exp(l(id));
    EXPECT_NEAR(entries[slots[row]].chosen, l(chosen[row]) - std::log(sum), 1e-4) << "slot " << slots[row];
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
