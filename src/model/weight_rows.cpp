// The part of WeightStream for row layouts (base/dtype.h): rows that the GPU reads as the file has them are copied, the
// others rearranged by the host in bounded pieces. No fast lane reads the latter.
#include <algorithm>

#include "formats/quant/repack.h"
#include "model/weight_stream.h"

namespace doppler::model {
namespace {

// Host memory for rearranging at a time: large enough to hide per-call costs, small in a browser tab.
constexpr uint64_t kPieceBytes = 8ull << 20;

}  // namespace

// Sets `copied` unless the file is neither mapped nor streamed by the host.
Task<Result<void>> WeightStream::copy_rows(const Piece& piece, const Span& span, const WeightLayout& layout,
                                           bool& copied) {
  formats::ByteSource& file = checkpoint_.file(span.tensor->file);
  const uint64_t bytes = span.rows * row_bytes(span);
  const uint64_t begin = span.tensor->offset + span.first * row_bytes(span);
  const uint64_t target = piece.offset + span.target_row * layout.plane0_row_bytes;
  const std::span<const uint8_t> mapped = file.mapped();
  copied = true;
  if (mapped.empty()) {
    auto streaming = stream(*piece.buffer, target, file, begin, bytes);
    DP_CO_TRY(copied, co_await std::move(streaming));
  } else {
    DP_CO_CHECK(co_await file.ready(begin, bytes));
    file.will_read(begin, bytes);
    DP_CO_CHECK(co_await device_.upload(*piece.buffer, target, mapped.subspan(begin, bytes)));
    DP_CO_CHECK(co_await file.ready(begin, bytes));
    file.done_with(begin, bytes);
  }
  if (copied) {
    streamed_.copied += bytes;
    DP_CO_CHECK(note_read(bytes));
  }
  co_return Result<void>();
}

Task<Result<void>> WeightStream::rearrange_rows(const Piece& piece, const Span& span,
                                                const WeightLayout& layout, std::vector<uint8_t>& plane1) {
  formats::ByteSource& file = checkpoint_.file(span.tensor->file);
  const uint64_t begin = span.tensor->offset + span.first * row_bytes(span);
  const std::span<const uint8_t> mapped = file.mapped();
  const uint64_t rows_at_once =
      std::max<uint64_t>(1, kPieceBytes / std::max(row_bytes(span), layout.plane0_row_bytes));
  std::vector<uint8_t> plane0;
  for (uint64_t row = 0; row < span.rows; row += rows_at_once) {
    const uint64_t rows = std::min(rows_at_once, span.rows - row);
    const uint64_t from = begin + row * row_bytes(span), bytes = rows * row_bytes(span);
    std::vector<uint8_t> held;
    if (mapped.empty()) {
      DP_CO_TRY(held, co_await file.read(from, bytes));
    } else {
      DP_CO_CHECK(co_await file.ready(from, bytes));
    }
    const uint8_t* source = mapped.empty() ? held.data() : mapped.data() + from;
    plane0.assign(rows * layout.plane0_row_bytes, 0);
    const uint64_t target = span.target_row + row;
    uint8_t* scales = plane1.empty() ? nullptr : plane1.data() + target * layout.plane1_row_bytes;
    DP_CO_CHECK(
        formats::repack_rows(span.tensor->type, piece.format, source, rows, piece.k, plane0.data(), scales));
    const uint64_t at = piece.offset + target * layout.plane0_row_bytes;
    DP_CO_CHECK(co_await device_.upload(*piece.buffer, at, plane0));
    if (!mapped.empty()) {
      DP_CO_CHECK(co_await file.ready(from, bytes));
      file.done_with(from, bytes);
    }
    streamed_.rearranged += bytes;
    DP_CO_CHECK(note_read(bytes));
  }
  co_return Result<void>();
}

// Plane 1 goes up as a whole: its rows need not begin at whole words.
Task<Result<void>> WeightStream::run_rows(const Piece& piece) {
  const WeightLayout layout = weight_layout(piece.format, piece.rows, piece.k);
  std::vector<uint8_t> plane1(layout.plane1_offset == 0 ? 0 : layout.total_bytes - layout.plane1_offset);
  for (const Span& span : piece.spans) {
    bool copied = false;
    if (formats::is_plain_copy(span.tensor->type, piece.format, piece.k)) {
      auto copying = copy_rows(piece, span, layout, copied);
      DP_CO_CHECK(co_await std::move(copying));
    }
    if (copied) continue;
    auto rearranging = rearrange_rows(piece, span, layout, plane1);
    DP_CO_CHECK(co_await std::move(rearranging));
  }
  if (plane1.empty()) co_return Result<void>();
  co_return co_await device_.upload(*piece.buffer, piece.offset + layout.plane1_offset, plane1);
}

}  // namespace doppler::model
