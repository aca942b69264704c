// The buffer of steps that draft, besides the step state. It holds the tokens of the step, and the text that the
// drafter lookup searches. draft_text.wgsl has the same layout in WGSL. draft.h and lookup.h say who reads and writes
// what.
#pragma once

#include <cstdint>

#include "kernels/common/step_state.h"

namespace doppler::kernels {

inline constexpr uint32_t kMostDraftRows = 8;  // of a step: a token and its drafts
// An entry of the output ring, like kRejected: the step had fewer drafts than rows, so it has no token here.
inline constexpr uint32_t kNoDraft = 0xFFFFFFFCu;
inline constexpr bool is_left_out(uint32_t entry) { return entry == kRejected || entry == kNoDraft; }

// Words of the buffer. The host writes kTextBase, kTextWritten and the tokens. If it drafts, it also writes kTextGiven
// and the rows. The GPU writes all other words.
inline constexpr uint32_t kTextBase =
    0;  // tokens before the text that are searched too: a prediction of the answer
inline constexpr uint32_t kTextLength = 1;   // tokens of the text up to which the GPU has it
inline constexpr uint32_t kTextWritten = 2;  // tokens of the text that the host has written
inline constexpr uint32_t kTextBest = 3;     // the match of this step (lookup.h); 0 between steps
inline constexpr uint32_t kTextGiven = 4;    // drafts that the host has written (given_drafts)
inline constexpr uint32_t kTextRows = 64;    // the step's tokens: the last choice, then its drafts
inline constexpr uint32_t kTextTokens =
    128;  // from here on: `base` tokens, then the text, position by position
// The words for a text of so many tokens and one more place.
inline constexpr uint64_t text_words(uint64_t tokens) { return kTextTokens + tokens + 1; }

}  // namespace doppler::kernels
