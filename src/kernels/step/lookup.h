// The drafter lookup: the tokens that followed the text's last tokens where they stood before. It asks no model, so every
// model has it. It is all on the GPU; the host writes the prompt and, now and then, tokens that it knows.
// Read next: draft.h (the step around it), draft_text.h (the buffer `text`).
//
// `end` = text.base + pos is the place of the last choice in text.tokens. A match at j, j < end, is as long as the tokens
// up to j are those up to end, at most kLongestMatch. A match of fewer than kLeastMatch is none. The longest wins, of
// those the latest. Its drafts are tokens[j + 1], tokens[j + 2], ... After tokens[end] the drafts themselves go on, so
// that a text of one repeated word is drafted whole. A word that is no token ends the drafts.
#pragma once

#include "kernels/context.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

inline constexpr uint32_t kLeastMatch = 3;
inline constexpr uint32_t kLongestMatch = 16;
// The place of a match is kept in 27 bits.
inline constexpr uint32_t kMostTextTokens = 1u << 27;

// Before drafting steps: the last entries of the ring are tokens of plain steps, which are not in the text yet.
// tokens[base + p] is set for each position p from max(length, written) to pos, as far as the ring goes back; length
// becomes pos + 1. Nothing happens if the generation has stopped.
struct TextFromRing {
  TensorView text;
  TensorView ring;  // u32 [kTokenRing]
};
Result<void> record(Context& ctx, const TextFromRing& op);

// The begin of a drafting step, in two dispatches. The first makes best = the match (length << 27 | j), 0 without one.
// The second sets text.rows[0] = tokens[end], text.rows[i] = the drafts, and StepState.rows = 1 + their number, at most
// `rows` and ctx_len - pos in all; best = 0. It sets 1 row if the generation has stopped.
struct LookupDrafts {
  TensorView text;
  uint32_t vocab_size = 0;
  uint32_t rows = 2;
  bool fills = false;  // for measurements: as many rows as there may be, with or without a match
};
Result<void> record(Context& ctx, const LookupDrafts& op);

}  // namespace doppler::kernels
