// What the rows of a drafting step look back on, where the choice of a token depends on the tokens before it: each row
// sees the text as it would be if its drafts were right, since only then does it count. Read next: draft.h (the step),
// sample/sample.h and sample/more.h (who reads it).
#pragma once

#include "kernels/context.h"
#include "kernels/sample/sample.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

// Behind the begin of a drafting step. out[i] = counts as they are once text.rows[1] to [i] stand behind the last choice
// (point 3 of step.h for each, in order), for i below StepState.rows.
struct DraftCounts {
  TensorView text;    // draft_text.h
  TensorView counts;  // u32 [vocab_size]
  TensorView recent;  // u32 [kPenaltyRing]
  TensorView out;     // u32 [rows, vocab_size]
  uint32_t vocab_size = 0, rows = 2;
};
Result<void> record(Context& ctx, const DraftCounts& op);

// Likewise: out[i] = more with text.rows[1] to [i] behind its history, mu as it is.
struct DraftMore {
  TensorView text;
  TensorView more;  // MoreState
  TensorView out;   // MoreState [rows]
  uint32_t rows = 2;
};
Result<void> record(Context& ctx, const DraftMore& op);

// Behind draft_end: more = rows[kept_row], which its choice has moved on.
struct KeptMore {
  TensorView rows;  // MoreState [n]
  TensorView more;  // MoreState
};
Result<void> record(Context& ctx, const KeptMore& op);

}  // namespace doppler::kernels
