// Bytes are copied where type and order stay; otherwise rows go through floats (piece.h).
#include "formats/convert/piece.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

// The number of heads whose rows change places within each head.
uint32_t ordered_heads(const TensorPart& part) { return part.interleaved_heads + part.halved_heads; }

bool orders_rows(const TensorPart& part) { return ordered_heads(part) != 0 || part.row_heads.head_size != 0; }

// A vector is one row, unless its numbers change places as rows do.
uint64_t rows_of(const TensorPart& part) {
  uint64_t rows = 1;
  if (part.source->shape.size() == 1 && orders_rows(part)) return part.source->shape[0];
  for (size_t d = 0; d + 1 < part.source->shape.size(); ++d) rows *= part.source->shape[d];
  return rows;
}

// Vectors are one row, and each source of a fused vector gives a part of it. A vector that becomes a column counts so
// too.
uint64_t columns_of(const OutTensor& tensor, const TensorPart& part) {
  if (tensor.shape.size() != 1 && part.source->shape.size() != 1) return tensor.k();
  return orders_rows(part) ? 1 : part.source->shape.back();
}

uint64_t rounded_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Rows that must stay together.
uint64_t row_unit(const OutTensor& tensor, const TensorPart& part) {
  uint64_t unit = 1;
  if (ordered_heads(part) != 0) unit = rows_of(part) / ordered_heads(part);
  if (part.row_heads.head_size != 0) unit = rows_of(part);
  if (tensor.layout == RdrrLayout::kFlat) {
    const uint64_t block = dtype_info(tensor.type).block_size;
    unit = std::lcm(unit, block / std::gcd(block, tensor.k()));
  }
  return unit;
}

// Row `row` of the output within the piece comes from this row of the source.
uint64_t source_row(const TensorPart& part, uint64_t row, uint64_t head_rows) {
  if (part.row_heads.head_size != 0) return part.row_heads.source_of(row);
  if (head_rows == 0) return row;
  const uint64_t in_head = row % head_rows;
  if (part.halved_heads != 0) {
    const uint64_t half = part.halved_rows / 2;
    return in_head >= part.halved_rows ? row : row - in_head + in_head % half * 2 + in_head / half;
  }
  return row - in_head + in_head / 2 + in_head % 2 * (head_rows / 2);
}

void order_columns(const TensorPart::HeadOrder& heads, uint64_t k, std::span<float> numbers) {
  std::vector<float> row(host_size(k));
  for (size_t first = 0; first < numbers.size(); first += host_size(k)) {
    std::copy_n(numbers.begin() + static_cast<ptrdiff_t>(first), k, row.begin());
    for (uint64_t c = 0; c < k; ++c) numbers[first + host_size(c)] = row[host_size(heads.source_of(c))];
  }
}

// The largest number that the type holds: blocks of MXFP4 have an exponent of 8 bits for a scale.
float largest_of(DType type) {
  constexpr float kLargestF16 = 65504.0f;
  const bool wide = type == DType::kF32 || type == DType::kBF16 || type == DType::kMXFP4;
  return wide ? std::numeric_limits<float>::max() : kLargestF16;
}

// Numbers in rows of k; the first row and column are those of numbers[0]. The loop over all numbers has no branch.
Unfit find_unfit(std::span<const float> numbers, uint64_t k, DType type) {
  const float largest = largest_of(type);
  uint32_t count = 0;
  for (const float v : numbers) count += std::fabs(v) <= largest ? 0u : 1u;
  if (count == 0) return {};
  const auto first =
      std::ranges::find_if(numbers, [&](float v) { return !(std::fabs(v) <= largest); }) - numbers.begin();
  const auto place = static_cast<uint64_t>(first);
  return {count, place / k, place % k, *(numbers.begin() + first)};
}

// The importance of the columns of this row; null: none.
const float* importance_of(const OutTensor& tensor, uint64_t row) {
  if (tensor.importance.empty()) return nullptr;
  const uint64_t vectors = tensor.importance.size() / tensor.k();
  const uint64_t rows_each = std::max<uint64_t>(1, tensor.rows() / vectors);
  return tensor.importance.data() + std::min(row / rows_each, vectors - 1) * tensor.k();
}

// Rows of k numbers in the tensor's type; the last block of each is filled up with zeros (kRow), or they follow each
// other without a gap (kFlat).
Result<std::vector<uint8_t>> encode(const OutTensor& tensor, std::span<const float> numbers, uint64_t k,
                                    uint64_t first_row) {
  const uint64_t rows = numbers.size() / k;
  const uint64_t block = dtype_info(tensor.type).block_size;
  if (tensor.layout == RdrrLayout::kFlat && k % block != 0) {
    std::vector<uint8_t> out(host_size(bytes_of(tensor.type, numbers.size())));
    DP_CHECK(quantise(tensor.type, numbers.data(), out.data(), numbers.size()));
    return out;
  }
  const uint64_t padded = rounded_up(k, block), row_bytes = bytes_of(tensor.type, padded);
  std::vector<uint8_t> out(host_size(rows * row_bytes));
  std::vector<float> row_numbers(host_size(padded)), weights;
  for (uint64_t row = 0; row < rows; ++row) {
    const float* x = numbers.data() + row * k;
    const float* importance =
        tensor.layout == RdrrLayout::kColumn ? nullptr : importance_of(tensor, first_row + row);
    if (padded != k) {
      std::copy_n(x, host_size(k), row_numbers.data());
      x = row_numbers.data();
      if (importance) {
        weights.assign(host_size(padded), 0.0f);
        std::copy_n(importance, host_size(k), weights.data());
        importance = weights.data();
      }
    }
    DP_CHECK(quantise(tensor.type, x, out.data() + row * row_bytes, host_size(padded), importance));
  }
  return out;
}

Result<ConvertedPiece> convert_rows(const OutTensor& tensor, const TensorPart& part, const Piece& piece,
                                    std::span<const uint8_t> source) {
  const uint64_t k = columns_of(tensor, part);
  const DType from = part.source->type;
  const uint64_t head_rows = ordered_heads(part) == 0 ? 0 : rows_of(part) / ordered_heads(part);
  const bool same_bytes =
      from == tensor.type && part.plus == 0 && !part.is_log && part.column_heads.head_size == 0;
  if (same_bytes && !orders_rows(part)) return ConvertedPiece{{source.begin(), source.end()}, {}};

  const uint64_t row_bytes = source.size() / piece.count;
  std::vector<uint8_t> ordered;
  if (orders_rows(part)) {
    ordered.resize(source.size());
    for (uint64_t row = 0; row < piece.count; ++row) {
      std::memcpy(ordered.data() + row * row_bytes,
                  source.data() + source_row(part, row, head_rows) * row_bytes, host_size(row_bytes));
    }
    if (same_bytes) return ConvertedPiece{std::move(ordered), {}};
    source = ordered;
  }
  std::vector<float> numbers(host_size(piece.count * k));
  DP_CHECK(dequantise(from, source.data(), numbers.data(), numbers.size()));
  if (part.plus != 0) {
    for (float& v : numbers) v += part.plus;
  }
  if (part.column_heads.head_size != 0) order_columns(part.column_heads, k, numbers);
  if (part.is_log) {
    for (float& v : numbers) v = -std::exp(v);
  }
  uint64_t first_row = piece.first;
  for (uint32_t p = 0; p < piece.part; ++p) first_row += rows_of(tensor.parts[p]);
  if (tensor.type != DType::kF32) {
    Unfit unfit = find_unfit(numbers, k, tensor.type);
    unfit.row += first_row;
    if (unfit.count != 0) return ConvertedPiece{{}, unfit};
  }
  DP_TRY(std::vector<uint8_t> bytes, encode(tensor, numbers, k, first_row));
  return ConvertedPiece{std::move(bytes), {}};
}

Result<ConvertedPiece> convert_columns(const OutTensor& tensor, const TensorPart& part, const Piece& piece,
                                       std::span<const uint8_t> source) {
  const uint64_t k = tensor.k(), n = tensor.rows();
  const uint64_t block = dtype_info(part.source->type).block_size;
  const uint64_t begin = piece.first / block * block;
  const uint64_t end = rounded_up(piece.first + piece.count, block);
  const uint64_t row_bytes = bytes_of(part.source->type, k);
  std::vector<float> numbers(host_size(piece.count * n)), blocks(host_size(end - begin));
  for (uint64_t row = 0; row < n; ++row) {
    const uint8_t* at = source.data() + row * row_bytes + bytes_of(part.source->type, begin);
    DP_CHECK(dequantise(part.source->type, at, blocks.data(), blocks.size()));
    for (uint64_t c = 0; c < piece.count; ++c) numbers[c * n + row] = blocks[piece.first - begin + c];
  }
  Unfit unfit;
  for (uint64_t c = 0; c < piece.count; ++c) {
    const Unfit column =
        find_unfit(std::span(numbers).subspan(host_size(c * n), host_size(n)), 1, tensor.type);
    add_unfit(unfit, {column.count, column.row, piece.first + c, column.value});
  }
  if (unfit.count != 0) return ConvertedPiece{{}, unfit};
  DP_TRY(std::vector<uint8_t> bytes, encode(tensor, numbers, n, 0));
  return ConvertedPiece{std::move(bytes), {}};
}

}  // namespace

void append_pieces(const OutTensor& tensor, uint32_t index, uint64_t numbers, bool whole,
                   std::vector<Piece>& out) {
  if (tensor.parts.empty()) out.push_back({index, 0, 0, tensor.rows()});
  const bool columns = tensor.layout == RdrrLayout::kColumn;
  for (uint32_t p = 0; p < tensor.parts.size(); ++p) {
    const TensorPart& part = tensor.parts[p];
    const uint64_t count = columns ? tensor.k() : rows_of(part);
    const uint64_t each = columns ? tensor.rows() : columns_of(tensor, part);
    const uint64_t unit = columns ? dtype_info(part.source->type).block_size : row_unit(tensor, part);
    const uint64_t step =
        whole ? count : rounded_up(std::max<uint64_t>(1, numbers / each / unit * unit), unit);
    for (uint64_t first = 0; first < count; first += step) {
      out.push_back({index, p, first, std::min(step, count - first)});
    }
  }
}

SourceRange source_range(const OutTensor& tensor, const Piece& piece) {
  if (tensor.parts.empty()) return {0, 0};
  const TensorInfo& source = *tensor.parts[piece.part].source;
  if (tensor.layout == RdrrLayout::kColumn) return {0, source.bytes};
  const uint64_t k = columns_of(tensor, tensor.parts[piece.part]);
  return {bytes_of(source.type, piece.first * k), bytes_of(source.type, piece.count * k)};
}

Result<ConvertedPiece> convert_piece(const OutTensor& tensor, const Piece& piece,
                                     std::span<const uint8_t> source) {
  if (tensor.parts.empty()) {
    DP_TRY(std::vector<uint8_t> bytes, encode(tensor, tensor.numbers, tensor.k(), 0));
    return ConvertedPiece{std::move(bytes), {}};
  }
  const TensorPart& part = tensor.parts[piece.part];
  if (tensor.layout == RdrrLayout::kColumn) return convert_columns(tensor, part, piece, source);
  return convert_rows(tensor, part, piece, source);
}

void add_unfit(Unfit& sum, const Unfit& more) {
  if (more.count == 0) return;
  const bool earlier = std::pair(more.row, more.column) < std::pair(sum.row, sum.column);
  const uint64_t count = sum.count + more.count;
  if (sum.count == 0 || earlier) sum = more;
  sum.count = count;
}

Error unfit_error(const OutTensor& tensor, const Unfit& unfit) {
  const std::string name = printable(tensor.name);
  return Error(
      ErrorKind::kInvalidInput,
      format_text("Tensor \"%s\" holds weights that %s cannot hold: %llu, the first at row %llu, column "
                  "%llu, is %g; mend the source, or keep the tensor as it is with --tensor '^%s$=keep' or "
                  "--quantize keep.",
                  name.c_str(), dtype_info(tensor.type).name, static_cast<unsigned long long>(unfit.count),
                  static_cast<unsigned long long>(unfit.row), static_cast<unsigned long long>(unfit.column),
                  static_cast<double>(unfit.value), name.c_str()));
}

}  // namespace doppler::formats
