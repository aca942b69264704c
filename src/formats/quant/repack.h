// Turns rows as a file stores them into the planes that the GPU kernels read (base/dtype.h: WeightFormat). A type's row
// in the table there says what it becomes (DTypeInfo::rows, exact_rows, tiles). A type that kernels read stays the
// same. q5_0 and iq4_nl become q8_0, since their codes fit in int8. q3_k becomes q6_k, which has the same groups and
// scales. All others become f16, or f32 when `exact`.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler::formats {

// An error for types that are no weights: integers, F64, bool.
Result<WeightFormat> device_format(DType type, bool exact);

// True when the file's rows are plane 0, byte for byte, so that they can be uploaded from the mapping.
bool is_plain_copy(DType from, WeightFormat to, uint64_t k);

// `rows` whole rows of k numbers from `src` to the planes of one piece, laid out as weight_layout(to, rows,
// k) says: plane0 has rows * plane0_row_bytes, plane1 (null if the format has none) rows * plane1_row_bytes.
// Padding is zeroed. Besides device_format()'s choices, any type can become f32 or f16.
Result<> repack_rows(DType from, WeightFormat to, const uint8_t* src, uint64_t rows, uint64_t k,
                     uint8_t* plane0, uint8_t* plane1);

// The tile format that the fast lanes read instead (DTypeInfo::tiles), for rows of k weights; none for f32 and for rows
// that are not whole units of 32.
std::optional<WeightFormat> tile_format(DType type, uint64_t k);

// The choices of a load: `exact` as above; `tiles`: the tile format if there is one.
struct LayoutPolicy {
  bool exact = false;
  bool tiles = false;
};
Result<WeightFormat> device_format(DType type, uint64_t k, LayoutPolicy policy);

// `rows` whole rows from `src` to rows first_row.. of a piece in tile_format(from, k), whose planes begin at plane0 and
// plane1 (null if the format has none). Rows that are not written keep the planes' content: zero them first.
Result<> repack_tiles(DType from, const uint8_t* src, uint64_t first_row, uint64_t rows, uint64_t k,
                      uint8_t* plane0, uint8_t* plane1);

}  // namespace doppler::formats
