// Constants and fragments for a launch whose cache is not one block of the context. In plans for many sequences
// (common/step_tables.h): the sizes that its tables are compiled for, and the state with the tables in place of the
// plain one. For a layer that keeps a ring of positions (rope/rope.h, CacheView): its length.
#pragma once

#include "kernels/common/dispatch.h"

namespace doppler::kernels {

// Adds the constants TABLE_SEQUENCES, TABLE_ROWS, TABLE_BLOCKS and BLOCK_LEN, and puts common/step_tables in place of
// common/step_state and common/many_sequences in place of common/one_sequence, which asks for N_KV_HEADS too. Does
// nothing for plans of one sequence. in_windows: the cache's blocks are in the table of layers with windows, so
// common/many_sequences_window is used. all_single (ALL_SINGLE): rows of pieces are attended each on its own too.
void add_tables(Launch& launch, const StepTables& tables, bool in_windows = false, bool all_single = false);

// Adds the constant RING_LEN, and puts common/one_sequence_ring in place of common/one_sequence. Nothing for 0.
void add_ring(Launch& launch, uint32_t ring_len);

// An error unless ctx.state holds the tables.
Result<void> check_tables(const Context& ctx);

}  // namespace doppler::kernels
