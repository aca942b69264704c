// The end of a step: takes the chosen token, checks the stops, writes it to the output ring, counts it for the
// penalties, and advances the step state (common/step_state.h). Read next: next.h, which also makes the next step's
// input.
//
// Exactly, with every name a field of StepState or a buffer of Step: Without `token` (a prefill chunk that does not
// sample): if stop_reason is kRunning, pos += rows; nothing else. With `token`, whatever happened before, one entry is
// written to the ring and ring_index += 1 (a free-running count: the entry's place is ring_index % kTokenRing), so the
// host finds one entry for each replayed step.
//   stop_reason != kRunning: the entry is kNoToken, and nothing else changes.
//   stop_reason == kRunning:
//     1. The entry is the token t, a stop token too: the host decides whether to show it.
//     2. pos += rows, generated += 1, then rows = 1: a decode plan may follow a prefill chunk without the host.
//     3. t will stand at position pos (the new one). The token in recent[pos % kPenaltyRing], if below vocab_size,
//        leaves: its count goes down by 1, but not below 0. recent[pos % kPenaltyRing] = t, and counts[t] += 1.
//     4. stop_reason becomes the first that holds: kStopToken, if ignore_stop is 0 and t is one of the first
//        stop_token_count stop_tokens; kTokenLimit, if generated >= max_generated; kContextFull, if pos >= ctx_len,
//        since the cache has no place for t. Then t is the last token: its key and value are not in the cache.
// Before a generation the host fills `recent` with kNoToken and `counts` with 0, then puts the token of each of the
// prompt's last kPenaltyRing positions p into recent[p % kPenaltyRing] and counts it. Hence `counts` always holds the
// last kPenaltyRing tokens of the text, prompt included.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

inline constexpr uint32_t kPenaltyRing = 64;  // tokens back that penalties look (llama.cpp's default)

struct Step {
  TensorView token;   // u32 [1], the choice; invalid: no sampling in this plan
  TensorView ring;    // u32 [kTokenRing]
  TensorView counts;  // u32 [vocab_size]: how often each token is in `recent`; read by sample.h
  TensorView recent;  // u32 [kPenaltyRing]
  uint32_t vocab_size = 0;
};
Result<void> record(Context& ctx, const Step& op);

}  // namespace doppler::kernels
