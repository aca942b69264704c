// The samplers that not every plan has: recorded if Sample::more is given, in plans of their own, so that others keep
// their four dispatches. These plans have six. With all such samplers off, the token is that of the plain chain.
//
// Exactly, between the steps of sample.h:
//   3a. DRY (p-e-w, github.com/oobabooga/text-generation-webui/pull/5677): h is the history's last dry_range tokens (0:
//       all it holds), N their number. Position i, 1 to N - 1, matches by the largest L, at most kDryLongest, for which
//       h[i - 1 - k] = h[N - 1 - k], a token that is no breaker, for all k < L. A token loses dry_multiplier *
//       dry_base^(L - dry_allowed_length), with the largest L of its positions, if L >= dry_allowed_length.
//   3b. While generated < min_tokens, the stop tokens are excluded, unless they are ignored.
//   3c. top-n-sigma (Tang et al. 2024, arXiv:2411.07641): with the standard deviation s of all l that are not excluded,
//       those with l < max l - top_n_sigma * s leave.
//   4a. Typical (Meister et al. 2022, arXiv:2202.00666): with the weights of step 5, H the entropy of the tokens that
//       are left, and d = |-ln p - H|: the shortest run of tokens by ascending d, then id, stays, whose weights reach
//       typical_p of the sum.
//   6a. XTC (p-e-w, github.com/oobabooga/text-generation-webui/pull/6335): with xtc_probability, drawn as in step 7
//       from the counter (generated, 1, 0, 0), and p of the tokens that are left: if two tokens or more have p >=
//       xtc_threshold, all such tokens leave but the worst. Off above a threshold of 0.5.
//   7.  max l is that of the tokens that are left. The temperature is dynamic (github.com/ggml-org/llama.cpp/pull/4972)
//       if dynatemp_range > 0: with low = max(0, temperature - range) and high = temperature + range, it is
//       low + (high - low) * (H / ln n)^dynatemp_exponent, of the entropy H and the number n of the tokens that are
//       left, if that is 2 or more.
// Mirostat 2 (Basu et al. 2021, arXiv:2007.14966) if mirostat_tau > 0, in place of steps 3c to 6a and the dynamic
// temperature: with p the weights at `temperature` over their sum, those with -log2 p > mu leave, but not the best.
// After the draw, mu -= mirostat_eta * (-log2 q - mirostat_tau), q being p over the tokens that were left.
// A greedy request gets no such sampler.
#pragma once

#include "kernels/sample/shape.h"

namespace doppler::kernels {

// The list that prepare adds to the logits in place of the request's own: [n, kMoreListEntries] x (u32 token, f32
// added), where the first entry's token is the count of the others. With the request's biases, points 3a and 3b.
Result<TensorView> record_more_bias(Context& ctx, const Sample& op, const SampleShape& shape);

// Counts and sums for point 3c, of each segment; after prepare.
Result<TensorView> record_more_spread(Context& ctx, const Sample& op, const SampleShape& shape,
                                      TensorView segment_max);

// Steps 3c to 7.
Result<void> record_more_draw(Context& ctx, const Sample& op, const SampleShape& shape, TensorView between,
                              TensorView candidates, TensorView spread);

// Makes the launches of the plain chain those of more.h: substitutions and constants.
void add_more(Launch& launch);

}  // namespace doppler::kernels
