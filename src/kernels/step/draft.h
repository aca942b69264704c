// Steps of one sequence that evaluate drafts. Row 0 is the last choice, and each further row is a guess of the next
// token. The begin and the end of such a step are on the GPU, so that drafting steps are replayed without the host. A
// drafter guesses the tokens: the model's own next-token layer (here), or a search in the text (lookup.h). Read next:
// step.h, whose rules hold for each choice that counts, and draft_text.h (the buffer `text`).
//
// A drafting step of n rows begins with a drafter's dispatches. Then come the layers over rows text.rows[i] at pos + i,
// and a choice for each row (Sample::rows). A next-token layer then takes the same rows and the choices, which are the
// next tokens, and also makes a choice for each row. draft_end is last. In a chunk of the prompt next_tokens makes the
// layer's other input.
#pragma once

#include "kernels/context.h"
#include "kernels/step/draft_text.h"
#include "kernels/step/step.h"

namespace doppler::kernels {

// The begin with the next-token layer, whose draft is in text.rows[1]: text.rows[0] = token[0]. StepState.rows becomes
// 2. It becomes 1 if pos + 1 >= ctx_len, since the cache has no place for a second row, or if the generation has
// stopped.
struct DraftBegin {
  TensorView token;  // u32 [1]: the last choice
  TensorView text;   // draft_text.h
};
Result<void> record(Context& ctx, const DraftBegin& op);

// The begin with the host's drafts: the host has written text.rows and text.given. StepState.rows becomes 1 + given, at
// most `rows` and ctx_len - pos. It becomes 1 if the generation has stopped.
struct GivenDrafts {
  TensorView text;
  uint32_t rows = 2;
};
Result<void> record(Context& ctx, const GivenDrafts& op);

// Each step writes `rows` entries to the ring, and ring_index += rows, whatever happened before.
//   stop_reason != kRunning: all are kNoToken, and nothing else changes.
//   stop_reason == kRunning: choice 0 counts. Choice i counts if choice i - 1 does, i < StepState.rows, choices[i - 1]
//   is text.rows[i], a token of the vocabulary, and no stop reason arose after choice i - 1.
//     1. For each choice that counts, in order: points 1 to 4 of step.h, as of a step of one row (pos += 1).
//     text.tokens gets it, and text.length is one more than its position. The entry of a choice that does not count is
//     kNoToken if a stop reason has arisen. Otherwise it is kNoDraft from StepState.rows on, and kRejected before.
//     2. token[0] = the last choice that counts; with `next` text.rows[1] = the draft after it.
//     3. kept_row = the row of the last choice that counts; rows = 1.
struct DraftEnd {
  TensorView choices;  // u32 [rows]: the token that each row chose; past StepState.rows they mean nothing
  TensorView text;     // draft_text.h
  TensorView
      next;  // u32 [rows]: what the next-token layer drafts after each choice; invalid: another drafter drafts
  TensorView
      token;  // u32 [1]: the last choice that counts, with which the next step begins, drafting or plain
  TensorView ring;    // u32 [kTokenRing]
  TensorView counts;  // u32 [vocab_size]
  TensorView recent;  // u32 [kPenaltyRing]
  uint32_t vocab_size = 0;
  uint32_t rows = 2;
  // For measurements, 0 to 1: this share of drafts counts as right, by chance, whatever they are. The text then means
  // nothing. Below 0: drafts are compared.
  float simulated = -1;
};
Result<void> record(Context& ctx, const DraftEnd& op);

// The token after each row of a step, which a next-token layer takes beside the row: out[i] = tokens[i + 1] for each
// row but the last of StepState.rows. The token after the last row is chosen[0], or without it the next of `tokens`.
// Entries of rows past the last do not change.
struct NextTokens {
  TensorView tokens;  // u32 [max_rows], without `chosen` [max_rows + 1]
  TensorView chosen;  // u32 [1], or invalid: the token after the last row
  TensorView out;     // u32 [max_rows]
};
Result<void> record(Context& ctx, const NextTokens& op);

}  // namespace doppler::kernels
