// From logits to the next token, on the GPU. Greedy: argmax of the plain logits; the lowest id wins a tie,
// NaN never wins. Sampled, in this order; everything is exact and independent of how work is spread over the
// device:
//   1. l = logits * logit_scale, then softcap. l above 1e30 (and infinity) is 1e30; below -1e30, -infinity
//   and NaN
//      are -1e30, which excludes the token for good (its weights below are 0, unless every token is
//      excluded).
//   2. For a token with counts[t] > 0: l > 0 ? l / repeat_penalty : l * repeat_penalty, then
//      l -= presence_penalty + frequency_penalty * counts[t].
//   3. l += each entry of the bias list that names the token, in the list's order. -infinity excludes.
//   4. top-k: the k best stay. "Better" is the higher l, then the lower id.
//   5. top-p: weights are exp(l - max l), rounded to a multiple of 2^-31 (as all weights here, so that their
//   sums
//      are integers); of the tokens left by 4, the shortest run of the best ones whose weights reach top_p of
//      the sum of all left by 4. At least one.
//   6. min-p: those with exp(l - max l) < min_p leave.
//   7. Draw: the weights of what is left are exp((l - max l) / temperature), S their sum in units of 2^-31, r
//   the
//      first word of philox4x32-10 (Salmon et al. 2011) with key (seed_low, seed_high) and counter
//      (generated, 0, 0, 0). The token is the first, from the best on, at which the running sum exceeds
//      floor(S * r / 2^32).
// So the same seed gives the same text on the same device and lane, however the steps are batched.
// A greedy request in a sampled plan (SampleParams::greedy) gets the greedy plan's token, from the plain logits: none of
// the steps above apply.
// Dispatches: greedy 2, or 1 where the product that made the logits left the best of its tiles; sampled 4. Vocabularies
// up to kMaxVocab.
// Many sequences (common/step_tables.h): one choice for each entry i of the table `sampled`, (slot, row). logits, best and
// token are those of i; params, bias, counts, the counter and the key those of the slot. Each draws as it would alone.
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
};
inline constexpr uint64_t kSampleParamsStride = 256;  // bytes from one slot's to the next's
inline constexpr uint32_t kMaxLogitBias = 1024;
inline constexpr uint32_t kMaxVocab = 1u << 18;

// n: the sequences of the tables, or 1.
struct Sample {
  TensorView logits;  // f32 [n, vocab_size]; may be changed; invalid with `best`
  // Optional, with greedy: the best logit and its id of each part of the vocabulary, as Linear::best leaves them; [n,
  // best_count].
  TensorView best;
  uint32_t best_count = 0;
  TensorView params;  // SampleParams [n], each in kSampleParamsStride bytes
  TensorView bias;    // [n, kMaxLogitBias] x (u32 token, f32 added)
  TensorView
      counts;  // u32 [n, vocab_size]: how often each token is among the penalised recent ones; maintained by the
               // step kernel and, for the prompt, by the host
  TensorView token;  // u32 [n]: the choice
  uint32_t vocab_size = 0;
  bool greedy = false;       // argmax of the plain logits
  float softcap = 0;         // 0: none; final logits = c * tanh(logits / c)
  float logit_scale = 1.0f;  // logits are multiplied by it (granite: 1 / logits_scaling)
};
Result<void> record(Context& ctx, const Sample& op);

}  // namespace doppler::kernels
