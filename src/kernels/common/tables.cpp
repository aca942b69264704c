// tables.h.
#include "kernels/common/tables.h"

namespace doppler::kernels {

void add_tables(Launch& launch, const StepTables& tables, bool in_windows, bool all_single) {
  if (tables.sequences == 0) return;
  launch.substitutions.emplace_back("common/step_state", "common/step_tables");
  const char* const many = in_windows ? "common/many_sequences_window" : "common/many_sequences";
  launch.substitutions.emplace_back("common/one_sequence", many);
  if (in_windows) launch.substitutions.emplace_back("common/many_sequences", many);
  launch.consts.push_back(u32_const("TABLE_SEQUENCES", tables.sequences));
  launch.consts.push_back(u32_const("TABLE_ROWS", tables.rows));
  launch.consts.push_back(u32_const("TABLE_BLOCKS", tables.blocks));
  launch.consts.push_back(u32_const("BLOCK_LEN", tables.block_len));
  launch.consts.push_back(bool_const("ALL_SINGLE", all_single));
}

void add_ring(Launch& launch, uint32_t ring_len) {
  if (ring_len == 0) return;
  launch.substitutions.emplace_back("common/one_sequence", "common/one_sequence_ring");
  launch.consts.push_back(u32_const("RING_LEN", ring_len));
}

Result<void> check_tables(const Context& ctx) {
  const StepTables& tables = ctx.tables;
  if (tables.sequences == 0 || tables.sequences > kMaxSequences || tables.rows < tables.sequences) {
    return fail(ErrorKind::kInternal,
                "Step tables of %u sequences and %u rows; allowed are 1 to %u sequences, and a row for each.",
                tables.sequences, tables.rows, kMaxSequences);
  }
  return check_view(ctx.state, tables.bytes(), "state with step tables");
}

}  // namespace doppler::kernels
