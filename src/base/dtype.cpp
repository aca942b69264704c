// The table of number types and block formats for dtype.h: a new format is a row.
#include "base/dtype.h"

#include <array>
#include <string>

#include "base/text.h"
#include "base/unread_dtypes.h"

namespace doppler {
namespace {

using W = WeightFormat;

// clang-format off
constexpr std::array kTypes = {
    DTypeInfo{.type = DType::kF32, .name = "f32", .block_bytes = 4, .rows = W::kF32, .exact_rows = W::kF32},
    DTypeInfo{.type = DType::kF16, .name = "f16", .block_bytes = 2, .rows = W::kF16, .exact_rows = W::kF16,
              .tiles = W::kTileF16},
    DTypeInfo{.type = DType::kBF16, .name = "bf16", .block_bytes = 2, .rows = W::kBF16, .exact_rows = W::kBF16,
              .tiles = W::kTileBF16},
    DTypeInfo{.type = DType::kQ4_0, .name = "q4_0", .block_size = 32, .block_bytes = 18, .quantised = true,
              .rows = W::kQ4_0, .exact_rows = W::kQ4_0, .tiles = W::kTileQ4},
    DTypeInfo{.type = DType::kQ4_1, .name = "q4_1", .block_size = 32, .block_bytes = 20, .quantised = true,
              .rows = W::kF16, .exact_rows = W::kF32, .tiles = W::kTileQ4},
    DTypeInfo{.type = DType::kQ5_0, .name = "q5_0", .block_size = 32, .block_bytes = 22, .quantised = true,
              .rows = W::kQ8_0, .exact_rows = W::kQ8_0, .tiles = W::kTileQ5},
    DTypeInfo{.type = DType::kQ5_1, .name = "q5_1", .block_size = 32, .block_bytes = 24, .quantised = true,
              .rows = W::kF16, .exact_rows = W::kF32, .tiles = W::kTileQ5},
    DTypeInfo{.type = DType::kQ8_0, .name = "q8_0", .block_size = 32, .block_bytes = 34, .quantised = true,
              .rows = W::kQ8_0, .exact_rows = W::kQ8_0, .tiles = W::kTileQ8},
    DTypeInfo{.type = DType::kQ2_K, .name = "q2_k", .block_size = 256, .block_bytes = 84, .quantised = true,
              .rows = W::kF16, .exact_rows = W::kF32, .tiles = W::kTileF16},
    DTypeInfo{.type = DType::kQ3_K, .name = "q3_k", .block_size = 256, .block_bytes = 110, .quantised = true,
              .rows = W::kQ6_K, .exact_rows = W::kQ6_K, .tiles = W::kTileQ6},
    DTypeInfo{.type = DType::kQ4_K, .name = "q4_k", .block_size = 256, .block_bytes = 144, .quantised = true,
              .rows = W::kQ4_K, .exact_rows = W::kQ4_K, .tiles = W::kTileQ4},
    DTypeInfo{.type = DType::kQ5_K, .name = "q5_k", .block_size = 256, .block_bytes = 176, .quantised = true,
              .rows = W::kQ5_K, .exact_rows = W::kQ5_K, .tiles = W::kTileQ5},
    DTypeInfo{.type = DType::kQ6_K, .name = "q6_k", .block_size = 256, .block_bytes = 210, .quantised = true,
              .rows = W::kQ6_K, .exact_rows = W::kQ6_K, .tiles = W::kTileQ6},
    DTypeInfo{.type = DType::kIQ4_NL, .name = "iq4_nl", .block_size = 32, .block_bytes = 18, .quantised = true,
              .rows = W::kQ8_0, .exact_rows = W::kQ8_0, .tiles = W::kTileQ8},
    DTypeInfo{.type = DType::kMXFP4, .name = "mxfp4", .block_size = 32, .block_bytes = 17, .quantised = true,
              .rows = W::kF16, .exact_rows = W::kF32, .tiles = W::kTileQ5},
    DTypeInfo{.type = DType::kI8, .name = "i8", .block_bytes = 1},
    DTypeInfo{.type = DType::kI16, .name = "i16", .block_bytes = 2},
    DTypeInfo{.type = DType::kI32, .name = "i32", .block_bytes = 4},
    DTypeInfo{.type = DType::kI64, .name = "i64", .block_bytes = 8},
    DTypeInfo{.type = DType::kF64, .name = "f64", .block_bytes = 8},
    DTypeInfo{.type = DType::kU8, .name = "u8", .block_bytes = 1},
    DTypeInfo{.type = DType::kBool, .name = "bool", .block_bytes = 1},
    DTypeInfo{.type = DType::kF8E4M3, .name = "f8_e4m3", .block_bytes = 1},
    DTypeInfo{.type = unread::kU16, .name = "u16", .block_bytes = 2},
    DTypeInfo{.type = unread::kU32, .name = "u32", .block_bytes = 4},
    DTypeInfo{.type = unread::kU64, .name = "u64", .block_bytes = 8},
    DTypeInfo{.type = unread::kC64, .name = "c64", .block_bytes = 8},
    DTypeInfo{.type = unread::kF8E5M2, .name = "f8_e5m2", .block_bytes = 1},
    DTypeInfo{.type = unread::kF8E8M0, .name = "f8_e8m0", .block_bytes = 1},
    DTypeInfo{.type = unread::kF6E2M3, .name = "f6_e2m3", .block_size = 4, .block_bytes = 3},
    DTypeInfo{.type = unread::kF6E3M2, .name = "f6_e3m2", .block_size = 4, .block_bytes = 3},
    DTypeInfo{.type = unread::kF4, .name = "f4", .block_size = 2, .block_bytes = 1},
};
// clang-format on

struct NamedId {
  uint32_t id;
  const char* name;
};
constexpr NamedId kUnsupported[] = {
    {9, "q8_1"},   {15, "q8_K"},  {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"},
    {19, "iq1_s"}, {21, "iq3_s"}, {22, "iq2_s"},   {23, "iq4_xs"}, {29, "iq1_m"},
    {34, "tq1_0"}, {35, "tq2_0"}, {40, "nvfp4"},
};

// clang-format off
constexpr std::array<WeightFormatInfo, kWeightFormatCount> kFormats = {{
    {.format = W::kF32, .name = "f32", .row_multiple = 4, .plane0_block_bytes = 4},
    {.format = W::kF16, .name = "f16", .row_multiple = 8, .plane0_block_bytes = 2},
    {.format = W::kBF16, .name = "bf16", .row_multiple = 8, .plane0_block_bytes = 2},
    {.format = W::kQ8_0, .name = "q8_0", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 32,
     .plane1_block_bytes = 2},
    {.format = W::kQ4_0, .name = "q4_0", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 16,
     .plane1_block_bytes = 2},
    {.format = W::kQ4_K, .name = "q4_k", .row_multiple = 256, .block_size = 256, .plane0_block_bytes = 144},
    {.format = W::kQ5_K, .name = "q5_k", .row_multiple = 256, .block_size = 256, .plane0_block_bytes = 176},
    {.format = W::kQ6_K, .name = "q6_k", .row_multiple = 256, .block_size = 256, .plane0_block_bytes = 208,
     .plane1_block_bytes = 2},
    {.format = W::kTileQ4, .name = "tile_q4", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 16,
     .plane1_block_bytes = 4, .tiled = true},
    {.format = W::kTileQ5, .name = "tile_q5", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 16,
     .plane1_block_bytes = 8, .tiled = true},
    {.format = W::kTileQ6, .name = "tile_q6", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 16,
     .plane1_block_bytes = 12, .tiled = true},
    {.format = W::kTileQ8, .name = "tile_q8", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 32,
     .plane1_block_bytes = 4, .tiled = true},
    {.format = W::kTileF16, .name = "tile_f16", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 64,
     .tiled = true},
    {.format = W::kTileBF16, .name = "tile_bf16", .row_multiple = 32, .block_size = 32, .plane0_block_bytes = 64,
     .tiled = true},
}};
// clang-format on
// weight_format_info() finds a row by its number.
static_assert([] {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].format != static_cast<W>(i)) return false;
  }
  return true;
}());

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

const DTypeInfo* dtype_info(uint32_t ggml_id) {
  for (const DTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == ggml_id) return &info;
  }
  return nullptr;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  const std::string lower = ascii_lower(name);
  for (const DTypeInfo& info : kTypes) {
    if (lower == info.name) return info.type;
  }
  return std::nullopt;
}

const char* unsupported_dtype_name(uint32_t ggml_id) {
  for (const NamedId& entry : kUnsupported) {
    if (entry.id == ggml_id) return entry.name;
  }
  return nullptr;
}

const WeightFormatInfo& weight_format_info(WeightFormat format) {
  return kFormats[static_cast<size_t>(format)];
}

WeightLayout weight_layout(WeightFormat format, uint64_t rows, uint64_t k) {
  const WeightFormatInfo& info = weight_format_info(format);
  WeightLayout layout{};
  const uint64_t padded_k = round_up(k, info.row_multiple);
  const uint64_t blocks_per_row = padded_k / info.block_size;
  layout.padded_k = static_cast<uint32_t>(padded_k);
  layout.padded_rows = info.tiled ? round_up(rows, kTileRows) : rows;
  layout.plane0_row_bytes = blocks_per_row * info.plane0_block_bytes;
  layout.plane1_row_bytes = blocks_per_row * info.plane1_block_bytes;
  layout.total_bytes = layout.padded_rows * layout.plane0_row_bytes;
  if (info.plane1_block_bytes != 0) {
    layout.plane1_offset = round_up(layout.total_bytes, 256);
    layout.total_bytes = layout.plane1_offset + layout.padded_rows * layout.plane1_row_bytes;
  }
  layout.total_bytes = round_up(layout.total_bytes, 16);
  return layout;
}

}  // namespace doppler
