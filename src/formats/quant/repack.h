// From rows as a file stores them to the planes that the GPU kernels read (base/dtype.h: WeightFormat). Block
// types without a kernel of their own become one that holds them without loss where there is one, else f16 or
// f32:
//
//   f32 f16 bf16 q8_0 q4_0 q4_k q5_k q6_k   themselves
//   q5_0, iq4_nl                            q8_0 (their codes fit in int8, same scale)
//   q3_k                                    q6_k (same groups, same scales)
//   q4_1 q5_1 q2_k mxfp4                    f16; f32 when `exact`, since f16 would round
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler::formats {

// An error for types that are no weights: integers, F64, bool.
Result<WeightFormat> device_format(DType type, bool exact);

// True when the file's rows are plane 0, byte for byte, so that they can be uploaded from the mapping as they
// are.
bool is_plain_copy(DType from, WeightFormat to, uint64_t k);

// `rows` whole rows of k numbers from `src` to the planes of one piece, laid out as weight_layout(to, rows,
// k) says: plane0 has rows * plane0_row_bytes, plane1 (null if the format has none) rows * plane1_row_bytes.
// Padding is zeroed. Besides device_format()'s choices, any type can become f32 or f16.
Result<> repack_rows(DType from, WeightFormat to, const uint8_t* src, uint64_t rows, uint64_t k,
                     uint8_t* plane0, uint8_t* plane1);

// The tile format that the fast lanes read instead, for rows of k weights; none for f32 and for rows that are not
// whole units of 32:
//
//   q4_0 q4_1 q4_k   tile_q4      q3_k q6_k     tile_q6      f16    tile_f16      q2_k, mxfp4   tile_f16
//   q5_0 q5_1 q5_k   tile_q5      q8_0 iq4_nl   tile_q8      bf16   tile_bf16
std::optional<WeightFormat> tile_format(DType type, uint64_t k);

// What a load may choose: `exact` as above; `tiles`: the tile format where there is one.
struct LayoutPolicy {
  bool exact = false;
  bool tiles = false;
};
Result<WeightFormat> device_format(DType type, uint64_t k, LayoutPolicy policy);

// `rows` whole rows from `src` to rows first_row.. of a piece in tile_format(from, k), whose planes begin at plane0
// and plane1 (null if the format has none). Rows that nobody writes keep what the planes held: zero them first.
Result<> repack_tiles(DType from, const uint8_t* src, uint64_t first_row, uint64_t rows, uint64_t k,
                      uint8_t* plane0, uint8_t* plane1);

}  // namespace doppler::formats
