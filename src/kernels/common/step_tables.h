// The step state of plans for many sequences: the slot and position of each row of the step, the places of each slot's
// keys and values, and the state of each slot's generation. It is one buffer with the StepState that all plans begin
// with, so that a kernel needs one binding. The host writes a request; step/arrange makes the tables from it, and
// step/advance moves them on, so that decode steps of many sequences are replayed without the host.
// The same layout in WGSL: common/step_tables.wgsl.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/step_state.h"

namespace doppler::kernels {

inline constexpr uint32_t kMaxSequences = 64;  // slots, most that a model may be loaded with
inline constexpr uint32_t kMaxPieces = 8;      // runs of prompt tokens in a step
inline constexpr uint32_t kStepRing = 1024;    // steps of the output ring: those of 4 tickets of 256
// The position of a row whose sequence has stopped: the row reads and writes nothing.
inline constexpr uint32_t kNowhere = 0xFFFFFFFFu;

// A run of rows of one sequence at consecutive positions.
struct PieceRequest {
  uint32_t slot = 0, pos = 0, rows = 0;
  uint32_t sample = 0;  // 1: its last row chooses a token
};

// The host's request before a step. Rows of the step: first one for each decoding slot, then those of the pieces.
struct StepRequest {
  uint32_t decoding = 0;  // entries of slots
  uint32_t pieces = 0;
  uint32_t entries = 0;  // of the ring for each slot, if the step evaluates drafts (step/advance_drafts.h)
  uint32_t reserved = 0;
  uint32_t slots[kMaxSequences] = {};
  PieceRequest piece[kMaxPieces];
};

// A slot's generation. Meaning of each field: StepState, and Step (step/step.h).
struct SequenceRecord {
  uint32_t pos = 0;      // tokens in the cache
  uint32_t token = 0;    // chosen and not in the cache yet: the input of its next decode step
  uint32_t ctx_len = 0;  // positions it may have
  uint32_t generated = 0, max_generated = 0, stop_reason = 0;
  uint32_t seed_low = 0, seed_high = 0;
  uint32_t stop_token_count = 0, ignore_stop = 0;
  uint32_t kept_row =
      0;  // the row of the last step with drafts whose choice was the slot's last that counted
  uint32_t reserved[5] = {};
  uint32_t stop_tokens[kMaxStopTokens] = {};
};

// Sizes that kernels are compiled for, and where each table begins, in bytes of the buffer.
//   [0]        StepState: `rows` and `single_rows` are of this step; of the rest only ring_index is used
//   [sampled_state()]  a StepState whose `rows` is how many rows choose a token: what the head's products are given
//   [request()]        StepRequest
//   [sampled()]        (slot, row) of each row that chooses a token, u32 x 2 [sequences]
//   [rows_table()]     (slot, position) of each row, u32 x 2 [rows]
//   [blocks_table()]   u32 [sequences, blocks]: the block of the pool that holds positions i * block_len ...
//   [records()]        SequenceRecord [sequences]
//   [windows_table()]  u32 [sequences, blocks]: likewise of layers with a window, where these have a pool of their own
struct StepTables {
  uint32_t sequences = 0;  // slots; 0: the plans of one sequence, without tables
  uint32_t rows = 0;       // most rows of a step
  uint32_t blocks = 0;     // entries of a slot's block table
  uint32_t block_len = 0;  // positions of a block
  bool has_windows = false;

  static constexpr uint64_t kAlign = 256;  // WebGPU's least alignment of a binding
  static constexpr uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
  static constexpr uint64_t sampled_state() { return aligned(sizeof(StepState)); }
  static constexpr uint64_t request() { return 2 * aligned(sizeof(StepState)); }
  static constexpr uint64_t sampled() { return request() + aligned(sizeof(StepRequest)); }
  uint64_t rows_table() const { return sampled() + aligned(uint64_t{kMaxSequences} * 8); }
  uint64_t blocks_table() const { return rows_table() + aligned(uint64_t{rows} * 8); }
  uint64_t records() const { return blocks_table() + aligned(uint64_t{sequences} * blocks * 4); }
  uint64_t windows_table() const { return records() + aligned(uint64_t{sequences} * sizeof(SequenceRecord)); }
  uint64_t bytes() const {
    return windows_table() + (has_windows ? aligned(uint64_t{sequences} * blocks * 4) : 0);
  }
};
static_assert(sizeof(StepRequest) == 4 * (4 + kMaxSequences + 4 * kMaxPieces));
static_assert(sizeof(SequenceRecord) == 4 * (16 + kMaxStopTokens));

}  // namespace doppler::kernels
