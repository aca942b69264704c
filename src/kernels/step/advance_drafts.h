// The end of a step of many sequences in which some evaluate drafts. The host makes the tables of such a step itself,
// since it gives the drafts: the rows of a slot are its last choice and its drafts, one after the other, and all rows
// are sampled. A slot without drafts has one row. Layout: common/step_tables.h. Read next: draft.h, whose words this
// page uses, and advance.h.
//
// Exactly, with E the request's `entries`, at least the most rows of a slot: each slot of the step gets E entries of
// the ring, in the E steps from ring_index % kStepRing on. Choice i of a slot counts as in draft.h, with text.rows of
// its row as the draft.
//   1. For each choice that counts, in order: points 1 to 3 of advance.h.
//   2. The entries of other choices are kNoToken after a stop. Otherwise they are kNoDraft from the slot's rows on, and
//      kRejected before. Slots that are not in the step get kNoToken.
//   3. The record's kept_row = the row of the last choice that counts.
//   4. ring_index += E. The tables stay as they are: the host sends a request before the next step.
#pragma once

#include "kernels/context.h"
#include "kernels/step/step.h"

namespace doppler::kernels {

struct AdvanceDrafts {
  TensorView choices;  // u32 [rows]: the token that each row chose
  TensorView text;     // draft_text.h: the tokens of the rows
  TensorView ring;     // u32 [kStepRing, sequences]
  TensorView counts;   // u32 [sequences, vocab_size], by slot
  TensorView recent;   // u32 [sequences, kPenaltyRing], by slot
  uint32_t vocab_size = 0;
  uint32_t rows = 2;     // most rows of a step; at most kMaxSequences
  float simulated = -1;  // DraftEnd::simulated
};
Result<void> record(Context& ctx, const AdvanceDrafts& op);

}  // namespace doppler::kernels
