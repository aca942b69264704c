// The drafter lookup: what followed the text's last tokens where they stood before. No model is asked, so every model has
// it, and every step of one sequence. All on the GPU; the host writes the prompt and, now and then, tokens that it knows.
// Read next: draft.h (the step around it), draft_text.h (the buffer `text`).
//
// With `end` = text.base + pos, the place of the last choice in text.tokens: a match at j, base or text, j < end, is as
// long as the tokens up to j are those up to end, at most kLongestMatch. A match of fewer than kLeastMatch is none. The
// longest wins, of those the latest. Its drafts are tokens[j + 1], tokens[j + 2], ...; behind tokens[end] the drafts
// themselves go on, so that a text of one repeated word is drafted whole. A word that is no token ends them.
#pragma once

#include "kernels/context.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

inline constexpr uint32_t kLeastMatch = 3;
inline constexpr uint32_t kLongestMatch = 16;
// The place of a match is kept in 27 bits.
inline constexpr uint32_t kMostTextTokens = 1u << 27;

// Before drafting steps: tokens that plain steps chose, and that nobody has put into the text, are the last entries of the
// ring. tokens[base + p] of each position p from max(length, written) to pos, as far as the ring goes back; length = pos
// + 1. Nothing where the generation has stopped.
struct TextFromRing {
  TensorView text;
  TensorView ring;  // u32 [kTokenRing]
};
Result<void> record(Context& ctx, const TextFromRing& op);

// The begin of a drafting step, in two dispatches: best = the match (length << 27 | j), 0 without one; then text.rows[0] =
// tokens[end], text.rows[i] = the drafts, StepState.rows = 1 + as many as there are, at most `rows` and ctx_len - pos in
// all; best = 0. Where the generation has stopped, 1 row.
struct LookupDrafts {
  TensorView text;
  uint32_t vocab_size = 0;
  uint32_t rows = 2;
  bool fills = false;  // for measurements: as many rows as there may be, with or without a match
};
Result<void> record(Context& ctx, const LookupDrafts& op);

}  // namespace doppler::kernels
