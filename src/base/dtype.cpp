// The table of number types and block formats behind dtype.h: a new format is a row.
#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace doppler {
namespace {

constexpr std::array kTypes = {
    DTypeInfo{DType::kF32, "f32", 1, 4, false},        DTypeInfo{DType::kF16, "f16", 1, 2, false},
    DTypeInfo{DType::kQ4_0, "q4_0", 32, 18, true},     DTypeInfo{DType::kQ4_1, "q4_1", 32, 20, true},
    DTypeInfo{DType::kQ5_0, "q5_0", 32, 22, true},     DTypeInfo{DType::kQ5_1, "q5_1", 32, 24, true},
    DTypeInfo{DType::kQ8_0, "q8_0", 32, 34, true},     DTypeInfo{DType::kQ2_K, "q2_k", 256, 84, true},
    DTypeInfo{DType::kQ3_K, "q3_k", 256, 110, true},   DTypeInfo{DType::kQ4_K, "q4_k", 256, 144, true},
    DTypeInfo{DType::kQ5_K, "q5_k", 256, 176, true},   DTypeInfo{DType::kQ6_K, "q6_k", 256, 210, true},
    DTypeInfo{DType::kIQ4_NL, "iq4_nl", 32, 18, true}, DTypeInfo{DType::kI8, "i8", 1, 1, false},
    DTypeInfo{DType::kI16, "i16", 1, 2, false},        DTypeInfo{DType::kI32, "i32", 1, 4, false},
    DTypeInfo{DType::kI64, "i64", 1, 8, false},        DTypeInfo{DType::kF64, "f64", 1, 8, false},
    DTypeInfo{DType::kBF16, "bf16", 1, 2, false},      DTypeInfo{DType::kMXFP4, "mxfp4", 32, 17, true},
    DTypeInfo{DType::kU8, "u8", 1, 1, false},          DTypeInfo{DType::kBool, "bool", 1, 1, false},
};

struct NamedId {
  uint32_t id;
  const char* name;
};
constexpr NamedId kUnsupported[] = {
    {9, "q8_1"},   {15, "q8_K"},  {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"},
    {19, "iq1_s"}, {21, "iq3_s"}, {22, "iq2_s"},   {23, "iq4_xs"}, {29, "iq1_m"},
    {34, "tq1_0"}, {35, "tq2_0"}, {40, "nvfp4"},
};

constexpr std::array<WeightFormatInfo, kWeightFormatCount> kFormats = {{
    {WeightFormat::kF32, "f32", 4, 1, 4, 0},
    {WeightFormat::kF16, "f16", 8, 1, 2, 0},
    {WeightFormat::kBF16, "bf16", 8, 1, 2, 0},
    {WeightFormat::kQ8_0, "q8_0", 32, 32, 32, 2},
    {WeightFormat::kQ4_0, "q4_0", 32, 32, 16, 2},
    {WeightFormat::kQ4_K, "q4_k", 256, 256, 144, 0},
    {WeightFormat::kQ5_K, "q5_k", 256, 256, 176, 0},
    {WeightFormat::kQ6_K, "q6_k", 256, 256, 208, 2},
    {WeightFormat::kTileQ4, "tile_q4", 32, 32, 16, 4, true},
    {WeightFormat::kTileQ5, "tile_q5", 32, 32, 16, 8, true},
    {WeightFormat::kTileQ6, "tile_q6", 32, 32, 16, 12, true},
    {WeightFormat::kTileQ8, "tile_q8", 32, 32, 32, 4, true},
    {WeightFormat::kTileF16, "tile_f16", 32, 32, 64, 0, true},
    {WeightFormat::kTileBF16, "tile_bf16", 32, 32, 64, 0, true},
}};

uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

const DTypeInfo* dtype_info(uint32_t ggml_id) {
  for (const DTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == ggml_id) return &info;
  }
  return nullptr;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
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
