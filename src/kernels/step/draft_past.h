// The past of each row of a drafting step, for choices that depend on the tokens before them. A row sees the text with
// the drafts before it, since it only counts if these were right. In plans of many sequences (advance_drafts.h) the
// rows are of several slots, and counts, recent and more are by slot. Read next: draft.h (the step), sample/sample.h
// and sample/more.h (the readers).
#pragma once

#include "kernels/context.h"
#include "kernels/sample/sample.h"
#include "kernels/step/draft_text.h"

namespace doppler::kernels {

// It runs after the begin of a drafting step. For i below StepState.rows, out[i] = counts after text.rows[1] to [i]
// were added to the text (point 3 of step.h for each, in order).
struct DraftCounts {
  TensorView text;    // draft_text.h
  TensorView counts;  // u32 [vocab_size]
  TensorView recent;  // u32 [kPenaltyRing]
  TensorView out;     // u32 [rows, vocab_size]
  uint32_t vocab_size = 0, rows = 2;
};
Result<void> record(Context& ctx, const DraftCounts& op);

// DraftCounts for MoreState: out[i] = more with text.rows[1] to [i] added to its history, and the same mu.
struct DraftMore {
  TensorView text;
  TensorView more;  // MoreState
  TensorView out;   // MoreState [rows]
  uint32_t rows = 2;
};
Result<void> record(Context& ctx, const DraftMore& op);

// It runs after draft_end or advance_drafts: more = past[kept_row], which its choice has moved on.
struct KeptMore {
  TensorView past;  // MoreState [rows]
  TensorView more;  // MoreState
  uint32_t rows = 2;
};
Result<void> record(Context& ctx, const KeptMore& op);

}  // namespace doppler::kernels
