// Number types: those found in files (DType, with ggml's numbers and block sizes) and those our kernels read
// (WeightFormat). Each is one row of a table in dtype.cpp, which holds everything about a block format except the code
// that reads it. formats/quant turns the first into the second at load.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace doppler {

// Values below kFirstOwnDType are ggml's type ids, as GGUF stores them; the others occur in safetensors only.
inline constexpr uint32_t kFirstOwnDType = 0x10000;
// clang-format off
enum class DType : uint32_t {
  kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8,
  kQ2_K = 10, kQ3_K = 11, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kIQ4_NL = 20,
  kI8 = 24, kI16 = 25, kI32 = 26, kI64 = 27, kF64 = 28, kBF16 = 30, kMXFP4 = 39,
  kU8 = kFirstOwnDType, kBool, kF8E4M3,
};
// clang-format on

// The layout of a weight matrix [n rows, k columns] in GPU memory. Every row is padded with zero weights to padded_k =
// k rounded up to the format's `row_multiple`. A piece (some whole rows) is one GPU buffer: plane 0 (`quants`), then,
// at the next multiple of 256 bytes, plane 1 (`scales`), if the format has one.
//
// format  plane 0 per row                                              plane 1 per row
// f32     padded_k f32                                                 -
// f16     padded_k f16                                                 -
// bf16    padded_k bf16                                                -
// q8_0    per 32: 32 int8                                              per 32: one f16 d          (w = d*q)
// q4_0    per 32: 16 B; byte i: low nibble = w[i], high = w[i+16]      per 32: one f16 d          (w = d*(q-8))
// q4_k    per 256: the 144 B GGUF block unchanged (9 vec4<u32>)        -
// q5_k    per 256: the 176 B GGUF block unchanged (11 vec4<u32>)       -
// q6_k    per 256: 208 B: ql[128] qh[64] int8 scales[16] (13 vec4)     per 256: one f16 d
// Plane 1 is packed across rows: the f16 of block b of row r (within the piece) is number r*blocks_per_row + b.
//
// The fast lanes read the tile formats: 32 rows (a tile) lie side by side, so that neighbouring invocations read
// neighbouring rows. A unit is 32 columns; P0 and P1 are in WeightFormatInfo. For row r of tile t, the vec4<u32> p of
// unit u in plane 0 is number ((t*units + u)*P0 + p)*32 + r, the u32 p in plane 1 number ((t*units + u)*P1 + p)*32 + r.
// Pieces begin at whole tiles; rows that fill up the last tile are zero.
//
// format     plane 0 per unit (vec4 p)                                  plane 1 per unit (u32 p)
// tile_q4    0: byte i: low nibble = w[i], high = w[i+16]               0: f16 scale, f16 min  (w = scale*q - min)
// tile_q5    0: as tile_q4                                              0: as tile_q4
//                                                                       1: w[4j+c]'s fifth bit at 8c+j,
//                                                                          w[16+4j+c]'s at 8c+4+j, j < 4
// tile_q6    0: as tile_q4                                              0: f16 scale of w[0..15], of w[16..31]
//                                                                       1: w[4j+c]'s two high bits at 8c+2j, j < 4
//                                                                       2: the same of w[16+4j+c]
//                                                                       (w = scale*(q - 32))
// tile_q8    p: w[16p..16p+15] as int8                                  0: f16 scale            (w = scale*q)
// tile_f16   p: w[8p..8p+7] as f16                                      -
// tile_bf16  p: w[8p..8p+7] as bf16                                     -
enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kTileQ4,
  kTileQ5,
  kTileQ6,
  kTileQ8,
  kTileF16,
  kTileBF16,
};
inline constexpr int kWeightFormatCount = 14;
inline constexpr uint32_t kTileRows = 32;  // rows of a tile, and columns of a unit

struct WeightFormatInfo {
  WeightFormat format;
  const char* name;             // "q4_k": the word in variant names and flags
  uint32_t row_multiple;        // padded_k is a multiple of this: 4 (f32), 8 (f16, bf16), the block otherwise
  uint32_t block_size = 1;      // 1 for plain numbers; of a tile format the unit
  uint32_t plane0_block_bytes;  // of one block (or number); of a tile format 16 * P0
  uint32_t plane1_block_bytes = 0;  // 0: no plane 1; of a tile format 4 * P1
  bool tiled = false;
  bool quantised() const {
    return block_size != 1 && plane1_block_bytes + plane0_block_bytes < 2 * block_size;
  }
};
const WeightFormatInfo& weight_format_info(WeightFormat format);

// A number type, as a row of one table. `rows`, `exact_rows` and `tiles` say what its weights become on the GPU; a type
// that is no weight (integers, f64, bool) has none of the three.
struct DTypeInfo {
  DType type;
  const char* name;         // "q4_k"
  uint32_t block_size = 1;  // elements per block; 1 for plain numbers
  uint32_t block_bytes;
  bool quantised = false;
  // In rows: the same type, or one that holds its numbers without loss, else f16. `exact_rows` has f32 instead of f16,
  // since f16 would round.
  std::optional<WeightFormat> rows = {}, exact_rows = {};
  std::optional<WeightFormat> tiles = {};  // for the fast lanes
};

// Null for a type id this build does not read.
const DTypeInfo* dtype_info(uint32_t ggml_id);
inline const DTypeInfo& dtype_info(DType type) { return *dtype_info(static_cast<uint32_t>(type)); }
std::optional<DType> dtype_from_name(std::string_view name);  // any case
// The name of a ggml type id we know of but cannot read ("iq2_xxs"), or null.
const char* unsupported_dtype_name(uint32_t ggml_id);

struct WeightLayout {
  uint32_t padded_k;
  uint64_t padded_rows;  // of tile formats: whole tiles
  uint64_t plane0_row_bytes;
  uint64_t plane1_row_bytes;  // may be odd multiples of 2: the plane, not the row, is aligned
  uint64_t plane1_offset;     // of the piece's plane 1 in its buffer; 0: none
  uint64_t total_bytes;       // of the piece's buffer, a multiple of 16
};
WeightLayout weight_layout(WeightFormat format, uint64_t rows, uint64_t k);

}  // namespace doppler
