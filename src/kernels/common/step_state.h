// The values that change from token to token. They live in one small GPU buffer; the host writes them before
// a prefill chunk and when a generation starts, and the step kernel (step/step.h) advances them, so that a
// decode plan can be replayed without the host. The same struct in WGSL: common/step_state.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler::kernels {

inline constexpr uint32_t kNoToken = 0xFFFFFFFFu;  // in the output ring: nothing was generated in this step
// There: the logits were NaN, or one was infinite (sample/sample.h); what follows it means nothing.
inline constexpr uint32_t kNotFinite = 0xFFFFFFFEu;
// There: a draft was wrong, and no token is here (step/draft.h).
inline constexpr uint32_t kRejected = 0xFFFFFFFDu;
inline constexpr uint32_t kTokenRing = 4096;  // entries of the output ring
inline constexpr uint32_t kMaxStopTokens = 32;

enum StopReason : uint32_t { kRunning = 0, kStopToken = 1, kTokenLimit = 2, kContextFull = 3 };

struct StepState {
  uint32_t pos = 0;        // tokens in the cache before this step: the position of its first row
  uint32_t rows = 1;       // tokens of this step: 1 in decode, 1..max_rows in prefill
  uint32_t ctx_len = 0;    // positions the cache holds
  uint32_t generated = 0;  // tokens generated so far in this generation; also the random counter
  uint32_t max_generated = 0;
  uint32_t stop_reason = 0;  // StopReason; once not kRunning, steps generate kNoToken and advance nothing
  uint32_t ring_index = 0;   // where the next token goes in the output ring, modulo kTokenRing
  uint32_t seed_low = 0, seed_high = 0;
  uint32_t stop_token_count = 0;
  uint32_t ignore_stop = 0;  // 1: --ignore-eos
  uint32_t single_rows = 0;  // many sequences (step_tables.h): the first rows, each a decoding slot's
  uint32_t stop_tokens[kMaxStopTokens] = {};
  uint32_t kept_row =
      0;  // models that draft: which row's recurrent state of the last step holds (0 or 1); else 0
  uint32_t rope_shift = 0;  // added to positions before they rotate (rope/rope.h, RopePlaces); may stand for less
};
static_assert(sizeof(StepState) == 4 * (14 + kMaxStopTokens));

}  // namespace doppler::kernels
