// From logits to the next token, on the GPU. If no logit is a finite number, or the highest is infinite, the choice is
// kNotFinite (common/step_state.h). Greedy: argmax of the plain logits; the lowest id wins a tie, NaN never wins.
// Sampled, in this order; everything is exact and independent of how work is spread over the device:
//   1. l = logits * logit_scale, then softcap. l above 1e30 is 1e30; below -1e30, -infinity and NaN are -1e30, which
//      excludes the token for good (its weights below are 0; if every token is excluded, the choice is kNotFinite).
//   2. For a token with counts[t] > 0: l > 0 ? l / repeat_penalty : l * repeat_penalty, then l -= presence_penalty +
//      frequency_penalty * counts[t].
//   3. l += each entry of the bias list that names the token, in the list's order. -infinity excludes.
//   4. top-k: the k best stay. "Better" is the higher l, then the lower id.
//   5. top-p: weights are exp(l - max l), rounded to a multiple of 2^-31 (as all weights here, so that their sums are
//      integers); of the tokens left by 4, the shortest run of the best ones whose weights reach top_p of the sum of
//      all left by 4. At least one.
//   6. min-p: those with exp(l - max l) < min_p leave.
//   7. Draw: the weights of the tokens that are left are exp((l - max l) / temperature), S their sum in units of 2^-31,
//      r the first word of philox4x32-10 (Salmon et al. 2011) with key (seed_low, seed_high) and counter (generated, 0,
//      0, 0). The token is the first, from the best on, at which the running sum exceeds floor(S * r / 2^32).
// So the same seed gives the same text on the same device and lane, however the steps are batched. A greedy request in
// a sampled plan (SampleParams::greedy) gets the greedy plan's token, from the plain logits: none of the steps above
// apply.
// Dispatches: greedy 2, or 1 if the product that made the logits left the best of its tiles; sampled 4. Vocabularies up
// to kMaxVocab. Log-probabilities: 2 more, one before and one after those (logprobs.h).
// Many sequences (common/step_tables.h): one choice for each entry i of the table `sampled`, (slot, row). logits, best
// and token are those of i; params, bias, counts, the counter and the key those of the slot. Each draws as it would by
// itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/context.h"

namespace doppler::kernels {

// Written by the host when a generation starts; the WGSL twin is in sample/sample_values.wgsl.
struct SampleParams {
  float temperature = 0.8f;     // > 0 (below 1e-7 counts as 1e-7)
  float top_p = 0.95f;          // 1 or more: off; 0 or less: the best one only
  float min_p = 0.0f;           // 0: off
  uint32_t top_k = 40;          // 0: off
  float repeat_penalty = 1.0f;  // 1: off; logits > 0 are divided, others multiplied (Keskar et al. 2019)
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  uint32_t bias_count = 0;  // entries of the bias list in use
  uint32_t greedy = 0;      // 1: argmax of the plain logits, for a greedy request beside sampled ones
  uint32_t logprobs = 0;    // 0: none; 1 + n: of the chosen token and of the n best, n at most kMaxLogProbs
  // Only where Sample::more is given (more.h).
  uint32_t min_tokens = 0;          // chosen before a stop token may be
  float top_n_sigma = 0;            // 0: off
  float typical_p = 1;              // 1 or more: off
  float xtc_probability = 0;        // 0: off
  float xtc_threshold = 0.1f;       // above 0.5: off
  float dynatemp_range = 0;         // 0: off
  float dynatemp_exponent = 1;      // > 0
  float mirostat_tau = 0;           // 0: off; the surprise to aim at, in bits
  float mirostat_eta = 0.1f;        // how fast
  float dry_multiplier = 0;         // 0: off
  float dry_base = 1.75f;           // at least 1
  uint32_t dry_allowed_length = 2;  // at least 1
  uint32_t dry_range = 0;           // tokens back, at most kDryHistory; 0: that many
};
inline constexpr uint64_t kSampleParamsStride = 256;  // bytes from one slot's to the next's
inline constexpr uint32_t kMaxLogProbs = 20;
static_assert(sizeof(SampleParams) <= kSampleParamsStride);

// For a token chosen with SampleParams::logprobs: the natural logarithms of the probabilities that the model gave,
// which are those of step 1 at temperature 1, before all other steps. Absolute error: 1e-5, or as much as f32 rounds. A
// token whose logit is -infinity or NaN has -1e30.
struct LogProbEntry {
  float chosen = 0;
  uint32_t count = 0;  // of `best`: n, or the vocabulary
  struct {
    uint32_t token = 0;
    float logprob = 0;
  } best[kMaxLogProbs];  // the higher l first, then the lower id
};
static_assert(sizeof(LogProbEntry) == 4 * (2 + 2 * kMaxLogProbs));
inline constexpr uint32_t kMaxLogitBias = 1024;
// Twice what published models have. sample_search.wgsl orders ids of 20 bits.
inline constexpr uint32_t kMaxVocab = 1u << 19;

inline constexpr uint32_t kDryHistory = 1024;  // tokens
inline constexpr uint32_t kDryLongest = 64;    // of a match: longer ones count as that long

// The state that the samplers of more.h keep for a slot from token to token. The host writes it when a generation
// starts; each choice moves it on, so such a request is in plans with `more` from its first token to its last.
struct MoreState {
  float mu = 0;        // of mirostat: 2 * tau at first
  uint32_t count = 0;  // tokens that went into the history
  uint32_t reserved[2] = {};
  uint32_t history[kDryHistory] =
      {};  // token i at i % kDryHistory: the prompt's last ones, then the chosen ones
};
// Does a request need Sample::more?
inline bool uses_more(const SampleParams& p) {
  return p.min_tokens > 0 || p.top_n_sigma > 0 || p.typical_p < 1 || p.xtc_probability > 0 ||
         p.dynatemp_range > 0 || p.mirostat_tau > 0 || p.dry_multiplier > 0;
}
inline uint32_t breaker_words(uint32_t vocab_size) { return (vocab_size + 31) / 32; }
inline uint32_t mask_words(uint32_t vocab_size) { return 1 + (vocab_size + 31) / 32; }

// n: the sequences of the tables, or 1. m: n, or `rows` if that is above 1.
struct Sample {
  TensorView logits;  // f32 [m, vocab_size]; may be changed; invalid with `best`
  // Optional, with greedy: the best logit and its id of each part of the vocabulary, as Linear::best leaves them; [n,
  // best_count].
  TensorView best;
  uint32_t best_count = 0;
  TensorView params;  // SampleParams [n], each in kSampleParamsStride bytes
  TensorView bias;    // [n, kMaxLogitBias] x (u32 token, f32 added)
  TensorView
      counts;  // u32 [n, vocab_size]: how often each token is among the penalised recent ones; maintained by the
               // step kernel and, for the prompt, by the host
  TensorView token;  // u32 [m]: the choice
  // Optional: LogProbEntry [kTokenRing], or with tables [kStepRing, n]. At ring_index, as the token's ring, it gets the
  // entry of each slot that asks for one. Other entries do not change. Not with `best`.
  TensorView logprobs;
  // Optional, without greedy: the samplers of more.h. MoreState [n]; and the tokens that end DRY's matches, u32 [n,
  // breaker_words(vocab_size)]: bit token % 32 of word token / 32.
  TensorView more, breakers;
  // Optional: the tokens that each slot may choose; without a mask all. u32 [n, mask_words(vocab_size)]: 1 if the slot
  // has a mask and else 0, then bit token % 32 of word 1 + token / 32. The logits of other tokens are -infinity from
  // here on, for the greedy choice too; log-probabilities are of the logits before. One dispatch more. Not with `best`.
  TensorView mask;
  uint32_t vocab_size = 0;
  // Above 1: the most rows of a step that evaluates drafts. Each row of a sequence, and not each sequence, chooses a
  // token. It draws as the choice would that comes so many choices later, with the counter's generated + i. Each row
  // has its own past (step/draft_past.h), so params, bias, counts, more, breakers and mask have m entries.
  // Log-probabilities of a sequence's row i go to ring_index + i. Not with `best`. In plans of one sequence all rows
  // choose, whatever StepState::rows is. In plans of many the rows are those of step/advance_drafts.h.
  uint32_t rows = 1;
  bool greedy = false;       // argmax of the plain logits
  float softcap = 0;         // 0: none; final logits = c * tanh(logits / c)
  float logit_scale = 1.0f;  // logits are multiplied by it (granite: 1 / logits_scaling)
};
Result<void> record(Context& ctx, const Sample& op);

}  // namespace doppler::kernels
