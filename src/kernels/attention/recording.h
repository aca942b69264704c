// Shared by the recordings of attention: constants, costs, forms of the result. For attention.cpp, which chooses and
// checks, and for record_each_row.cpp and record_tiles.cpp, which lay out the dispatches.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/variants.h"
#include "kernels/common/dispatch.h"

namespace doppler::kernels {

inline uint64_t row_floats(const Attention& op) {
  return static_cast<uint64_t>(op.n_heads) * op.cache.head_dim;
}

// Rows of q that are attended each on its own: all rows of the plan, or, in a step that has pieces of prompts too, at
// most so many first rows. The grid has that many rows, and those that are not there end at once.
struct SingleRows {
  uint32_t most = 0;
  bool beside_pieces = false;
};
SingleRows single_rows(const Context& ctx, const Attention& op);

// Constants and substitutions of every dispatch of attention; what those cost that read the cache.
void add_shared(const Context& ctx, const Attention& op, Launch& launch);
void add_costs(const Attention& op, Launch& launch);

// The row with the constants that tuning found better for this device and shape.
AttentionDecodeRow tuned_row(const Policy& policy, Choice& choice, const AttentionDecodeRow& row);
// True if a row writes y as f16 tiles itself, which it does if no other form is needed.
bool writes_f16_alone(const Attention& op, const AttentionDecodeRow& row, const Rows& y);
SplitPartials partials_of(const Context& ctx, const Attention& op, const DecodeSizes& sizes);

// The forms of y that the kernel did not write itself.
Result<void> record_other_forms(Context& ctx, const Attention& op, const Rows& y, bool has_q8, bool has_f16);

// op, over an f16 scratch copy of the keys and values that its rows see, if the cache is in q8_0 (only decode's kernel
// with subgroup operations reads that directly). Records the dispatch that makes the copy. each_row: rows may be of
// sequences of their own.
Result<Attention> unpacked(Context& ctx, const Attention& op, bool each_row);

// Records each row of q on its own. y_of_reader: the reader's form, SplitPartials if the row leaves them to it.
Result<void> record_each_row(Context& ctx, const Attention& op, Choice& choice,
                             const AttentionDecodeRow& chosen, const AttentionOutput& y_of_reader);
// In tiles of rows at consecutive positions; record_matrix on the matrix units.
Result<void> record_tiles(Context& ctx, const Attention& op, const AttentionPrefillRow& row, const Rows& y);
Result<void> record_matrix(Context& ctx, const Attention& op, const AttentionPrefillRow& row, const Rows& y);

}  // namespace doppler::kernels
