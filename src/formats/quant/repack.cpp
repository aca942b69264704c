// The table of conversions (repack.h) and their loops. Mere re-arrangements copy fixed-size pieces per block.
#include "formats/quant/repack.h"

#include <cstring>
#include <vector>

#include "formats/quant/codec.h"
#include "formats/quant/families.h"

namespace doppler::formats {
namespace {

using Ull = unsigned long long;

// `blocks` blocks to their parts in the two planes.
using MoveBlocks = void (*)(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1);

void split_q8_0(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 34, plane0 += 32, plane1 += 2) {
    std::memcpy(plane1, src, 2);
    std::memcpy(plane0, src + 2, 32);
  }
}

void split_q4_0(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 18, plane0 += 16, plane1 += 2) {
    std::memcpy(plane1, src, 2);
    std::memcpy(plane0, src + 2, 16);
  }
}

void split_q6_k(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 210, plane0 += 208, plane1 += 2) {
    std::memcpy(plane0, src, 208);
    std::memcpy(plane1, src + 208, 2);
  }
}

void q5_0_to_q8_0(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 22, plane0 += 32, plane1 += 2) {
    std::memcpy(plane1, src, 2);
    int8_t codes[32];
    quant::unpack_q5_0_codes(src, codes);
    std::memcpy(plane0, codes, 32);
  }
}

void iq4_nl_to_q8_0(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 18, plane0 += 32, plane1 += 2) {
    std::memcpy(plane1, src, 2);
    int8_t codes[32];
    quant::unpack_iq4_nl_codes(src, codes);
    std::memcpy(plane0, codes, 32);
  }
}

void q3_k_to_q6_k(const uint8_t* src, uint64_t blocks, uint8_t* plane0, uint8_t* plane1) {
  for (uint64_t b = 0; b < blocks; ++b, src += 110, plane0 += 208, plane1 += 2) {
    int8_t codes[256], scales[16];
    quant::unpack_q3_k_codes(src, codes, scales);
    quant::pack_q6_k_codes(codes, plane0);
    std::memcpy(plane0 + 192, scales, 16);
    std::memcpy(plane1, src + 108, 2);
  }
}

// Types whose blocks are taken apart, or become another type's, on the way to DTypeInfo::rows. Rows of the others are
// copied (same type) or go through float.
struct Move {
  DType from;
  MoveBlocks blocks;
};
constexpr Move kMoves[] = {
    {DType::kQ6_K, split_q6_k},   {DType::kQ8_0, split_q8_0},       {DType::kQ4_0, split_q4_0},
    {DType::kQ5_0, q5_0_to_q8_0}, {DType::kIQ4_NL, iq4_nl_to_q8_0}, {DType::kQ3_K, q3_k_to_q6_k},
};

MoveBlocks move_of(DType from, WeightFormat to) {
  if (dtype_info(from).rows != to) return nullptr;
  for (const Move& move : kMoves) {
    if (move.from == from) return move.blocks;
  }
  return nullptr;
}

// The same bits in file and plane; only the padding of the row may differ.
bool same_bits(DType from, WeightFormat to) {
  const WeightFormatInfo& format = weight_format_info(to);
  const DTypeInfo& type = dtype_info(from);
  return std::string_view(type.name) == format.name && format.plane1_block_bytes == 0;
}

void copy_rows(const uint8_t* src, uint64_t rows, size_t src_bytes, size_t row_bytes, uint8_t* plane0) {
  if (src_bytes == row_bytes) {
    std::memcpy(plane0, src, static_cast<size_t>(rows) * row_bytes);
    return;
  }
  for (uint64_t row = 0; row < rows; ++row, src += src_bytes, plane0 += row_bytes) {
    std::memcpy(plane0, src, src_bytes);
    std::memset(plane0 + src_bytes, 0, row_bytes - src_bytes);
  }
}

// Through float to f32 or f16, a row at a time.
Result<> convert_rows(DType from, DType to, const uint8_t* src, uint64_t rows, size_t k, size_t row_bytes,
                      uint8_t* plane0) {
  std::vector<float> row_values(k);
  const auto src_bytes = static_cast<size_t>(bytes_of(from, k)),
             out_bytes = static_cast<size_t>(bytes_of(to, k));
  for (uint64_t row = 0; row < rows; ++row, src += src_bytes, plane0 += row_bytes) {
    DP_CHECK(dequantise(from, src, row_values.data(), k));
    DP_CHECK(quantise(to, row_values.data(), plane0, k));
    std::memset(plane0 + out_bytes, 0, row_bytes - out_bytes);
  }
  return {};
}

}  // namespace

Result<WeightFormat> device_format(DType type, bool exact) {
  const DTypeInfo& info = dtype_info(type);
  const std::optional<WeightFormat> to = exact ? info.exact_rows : info.rows;
  if (!to) return fail(ErrorKind::kUnsupported, "Numbers of type %s cannot be used as weights.", info.name);
  return *to;
}

bool is_plain_copy(DType from, WeightFormat to, uint64_t k) {
  return same_bits(from, to) && k % weight_format_info(to).row_multiple == 0;
}

Result<> repack_rows(DType from, WeightFormat to, const uint8_t* src, uint64_t rows, uint64_t k,
                     uint8_t* plane0, uint8_t* plane1) {
  const DTypeInfo& type = dtype_info(from);
  if (k == 0 || k % type.block_size != 0) {
    return fail(ErrorKind::kInvalidInput, "Column count (%llu) is not a multiple of the %s block (%u).",
                static_cast<Ull>(k), type.name, type.block_size);
  }
  const auto columns = static_cast<size_t>(k);
  const auto row_bytes = static_cast<size_t>(weight_layout(to, rows, k).plane0_row_bytes);
  if (same_bits(from, to)) {
    copy_rows(src, rows, static_cast<size_t>(bytes_of(from, k)), row_bytes, plane0);
    return {};
  }
  if (const MoveBlocks move = move_of(from, to)) {
    move(src, rows * (k / type.block_size), plane0, plane1);
    return {};
  }
  if (type.rows && to == WeightFormat::kF32)
    return convert_rows(from, DType::kF32, src, rows, columns, row_bytes, plane0);
  if (type.rows && to == WeightFormat::kF16)
    return convert_rows(from, DType::kF16, src, rows, columns, row_bytes, plane0);
  return fail(ErrorKind::kUnsupported, "Weights of type %s cannot be laid out as %s.", type.name,
              weight_format_info(to).name);
}

}  // namespace doppler::formats
