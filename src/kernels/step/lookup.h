// The drafter lookup drafts the tokens that followed the text's last tokens where they stood before. It asks no model,
// so every model has it. The GPU does all its work; the host writes the prompt and, now and then, tokens that it knows.
// Read next: draft.h (the step around it), draft_text.h (the buffer `text`).
//
// `end` = text.base + pos is the place of the last choice in text.tokens. The length of a match at j, j < end, is the
// number of tokens up to j that equal those up to end, at most kLongestMatch. A match of fewer than kLeastMatch counts
// for nothing. The longest match wins, and among equals the latest. Its drafts are tokens[j + 1], tokens[j + 2], ...
// After tokens[end] the drafts themselves go on, so that a text of one repeated word is drafted whole. A word that is
// no token ends the drafts.
#pragma once

#include "kernels/context.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

inline constexpr uint32_t kLeastMatch = 3;
inline constexpr uint32_t kLongestMatch = 16;
// The place of a match is kept in 27 bits.
inline constexpr uint32_t kMostTextTokens = 1u << 27;

// It runs before drafting steps. The last entries of the ring are then tokens of plain steps, which are not in the text
// yet. It sets tokens[base + p] for each position p from max(length, written) to pos, as far as the ring goes back.
// length becomes pos + 1. If the generation has stopped, it changes nothing.
struct TextFromRing {
  TensorView text;
  TensorView ring;  // u32 [kTokenRing]
};
Result<void> record(Context& ctx, const TextFromRing& op);

// The begin of a drafting step, in two dispatches. The first makes best = the match (length << 27 | j), or 0 without
// one. The second sets text.rows[0] = tokens[end], text.rows[i] = the drafts, and StepState.rows = 1 + their number, at
// most `rows` and ctx_len - pos in all. It also sets best = 0. If the generation has stopped, it sets 1 row.
struct LookupDrafts {
  TensorView text;
  uint32_t vocab_size = 0;
  uint32_t rows = 2;
  bool fills = false;  // for measurements: as many rows as there may be, with or without a match
};
Result<void> record(Context& ctx, const LookupDrafts& op);

}  // namespace doppler::kernels
