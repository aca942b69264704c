// The tables of a step of many sequences, from the host's request: once a host step, before the plan's layers.
// advance.h makes the tables of the decode steps that are replayed after it. Layout: common/step_tables.h.
//
// Exactly, with D the request's `decoding` and a slot running while its record's stop_reason is kRunning:
//   Rows 0 to D - 1: slots[i] at its record's pos, and tokens[i] becomes the record's token. Without pieces a slot that
//     has stopped is left out, and the later ones move up. With pieces it keeps its row, at kNowhere, since the host
//     put
//     the pieces' tokens at tokens[D] and after it.
//   Rows from D on: those of each piece in turn, its slot at pos, pos + 1, ...; its record's pos becomes pos + rows.
//   sampled: each decoding slot that runs, in order, then the last row of each piece with sample = 1.
//   StepState.rows and sampled_state().rows count the rows and the sampled ones, StepState.single_rows those before the
//     pieces.
// A slot may be in a request once.
#pragma once

#include "kernels/context.h"

namespace doppler::kernels {

struct Arrange {
  TensorView tokens;  // u32 [tables.rows]: the input of each row; those of pieces are the host's
};
Result<void> record(Context& ctx, const Arrange& op);

}  // namespace doppler::kernels
