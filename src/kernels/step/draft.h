// Self-speculation of one sequence. A step has two rows: the last choice and a draft of the token after it, which the
// model's own next-token layer made in the step before. Its begin and end, and that layer's input, are all on the GPU,
// so that drafting steps are replayed without the host. Read next: step.h, whose rules hold for each choice that
// counts.
//
// A drafting step runs draft_begin, then the layers over rows (drafts[0] at pos, drafts[1] at pos + 1) and a choice for
// each row (Sample::rows). Then it runs the next-token layer over the same rows and the choices, which are the tokens
// after them, and a choice for each again, and draft_end. In a chunk of the prompt next_tokens makes the tokens that
// the layer takes beside the rows.
#pragma once

#include "kernels/context.h"
#include "kernels/step/step.h"

namespace doppler::kernels {

// drafts[0] = token[0]. StepState.rows becomes 2, or 1 in two cases: pos + 1 >= ctx_len, as the cache has no place for
// a second row, and a generation that has stopped.
struct DraftBegin {
  TensorView token;   // u32 [1]: the last choice
  TensorView drafts;  // u32 [2]: the step's tokens; [1] is the draft of the token after [0]
};
Result<void> record(Context& ctx, const DraftBegin& op);

// Two entries are written to the ring at each step and ring_index += 2, whatever happened before.
//   stop_reason != kRunning: both are kNoToken, and nothing else changes.
//   stop_reason == kRunning: the second choice counts if StepState.rows is 2, choices[0] is drafts[1], a token of the
//   vocabulary, and no stop reason arises after the first choice.
//     1. The first choice: points 1 to 4 of step.h, as for a step of one row (pos += 1).
//     2. The second, if it counts: likewise. Otherwise its entry is kNoToken if a stop reason arose after the first,
//        and kRejected if none did.
//     3. token[0] = the last choice that counts; drafts[1] = the draft after it, next[1] or next[0].
//     4. kept_row = 1 if the second counts, else 0; rows = 1.
struct DraftEnd {
  TensorView choices;  // u32 [2]: the token that each row chose; without a second row [1] means nothing
  TensorView drafts;   // u32 [2]: the step's tokens; [1] gets the next draft
  TensorView next;     // u32 [2]: the next-token layer's draft after each choice; likewise
  TensorView
      token;  // u32 [1]: the last choice that counts, with which the next step begins, drafting or plain
  TensorView ring;    // u32 [kTokenRing]
  TensorView counts;  // u32 [vocab_size]
  TensorView recent;  // u32 [kPenaltyRing]
  uint32_t vocab_size = 0;
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
