// Chunks of tiles through the staging buffers. The row layouts: weight_rows.cpp.
#include "model/weight_stream.h"

#include <algorithm>

#include "kernels/linear/repack/repack.h"

namespace doppler::model {
namespace {

// The file's bytes in one buffer, and the number of such buffers: while the GPU repacks one, the next is filled.
constexpr uint64_t kStagingBytes = 16ull << 20;
constexpr size_t kStagingBuffers = 3;
constexpr size_t kReadAhead = 2;  // chunks that the system is told of before they are needed

}  // namespace

WeightStream::WeightStream(gpu::Device& device, const formats::Checkpoint& checkpoint,
                           UploadProgress progress)
    : device_(device), checkpoint_(checkpoint), progress_(std::move(progress)), builder_(device.caps()) {
  for (const formats::TensorInfo& tensor : checkpoint.tensors()) total_bytes_ += tensor.bytes;
}

uint64_t WeightStream::row_bytes(const Span& span) const {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < span.tensor->shape.size(); ++i) rows *= span.tensor->shape[i];
  return span.tensor->bytes / rows;
}

Result<void> WeightStream::note_read(uint64_t bytes) {
  read_bytes_ += bytes;
  if (progress_ && !progress_(std::min(read_bytes_, total_bytes_), total_bytes_)) {
    return fail(ErrorKind::kCancelled, "The caller stopped the upload of the weights.");
  }
  return {};
}

// A plan a chunk: they differ in where they read and write.
Result<void> WeightStream::record_chunks(const Piece& piece, kernels::Context& ctx) {
  ctx.op_label = piece.name;
  const uint64_t piece_bytes = weight_layout(piece.format, piece.rows, piece.k).total_bytes;
  const kernels::WeightPiece target{.buffer = builder_.external(*piece.buffer).sub(piece.offset, piece_bytes),
                                    .first_row = 0,
                                    .rows = static_cast<uint32_t>(piece.rows)};
  for (const Span& span : piece.spans) {
    const uint64_t tile_bytes = kTileRows * row_bytes(span);
    const uint64_t tiles_at_once =
        std::clamp<uint64_t>(kStagingBytes / tile_bytes, 1, device_.caps().max_workgroups);
    for (uint64_t row = 0; row < span.rows; row += tiles_at_once * kTileRows) {
      const uint64_t rows = std::min(tiles_at_once * kTileRows, span.rows - row);
      const size_t staging = chunks_.size() % kStagingBuffers;
      const uint64_t bytes = rows * row_bytes(span);
      chunks_.push_back({.tensor = span.tensor,
                         .begin = span.tensor->offset + (span.first + row) * row_bytes(span),
                         .bytes = bytes,
                         .plan = chunks_.size(),
                         .staging = staging});
      kernels::Repack op{.from = span.tensor->type, .to = piece.format};
      op.k = piece.k;
      op.raw = staging_views_[staging].sub(0, (bytes + 3) / 4 * 4);
      op.rows = static_cast<uint32_t>(rows);
      op.piece = target;
      op.first_row = static_cast<uint32_t>(span.target_row + row);
      builder_.begin("repack", 1);
      DP_CHECK(kernels::record(ctx, op));
      builder_.end();
    }
  }
  return {};
}

Task<Result<void>> WeightStream::prepare() {
  uint64_t largest = 0;  // what a chunk can have: at least a tile
  for (const Piece& piece : pieces_) {
    if (!weight_format_info(piece.format).tiled) continue;
    for (const Span& span : piece.spans) {
      const uint64_t tile_bytes = kTileRows * row_bytes(span);
      const uint64_t all = (span.rows + kTileRows - 1) / kTileRows * tile_bytes;
      largest = std::max(largest, std::min(all, std::max(tile_bytes, kStagingBytes)));
    }
  }
  if (largest == 0) co_return Result<void>();
  for (size_t i = 0; i < kStagingBuffers; ++i) {
    gpu::BufferDesc desc{
        .name = format_text("staging %zu", i), .bytes = (largest + 3) / 4 * 4, .zeroed = false};
    DP_CO_TRY(gpu::Buffer buffer, co_await device_.create_buffer(std::move(desc)));
    staging_views_.push_back(builder_.external(buffer));
    staging_.push_back(std::move(buffer));
  }
  const kernels::Policy policy;  // every lane's tiles are made in the same way
  std::vector<kernels::Choice> choices;
  kernels::Context ctx{
      .plan = builder_, .policy = policy, .choices = choices, .state = {}, .max_rows = 1, .op_label = {}};
  for (const Piece& piece : pieces_) {
    if (weight_format_info(piece.format).tiled) DP_CO_CHECK(record_chunks(piece, ctx));
  }
  auto building = builder_.build(device_, {});
  DP_CO_TRY(built_, co_await std::move(building));
  co_return Result<void>();
}

// True if the host has such streams, and they were uploaded.
Task<Result<bool>> WeightStream::stream(const gpu::Buffer& buffer, uint64_t target, formats::ByteSource& file,
                                        uint64_t begin, uint64_t bytes) {
  DP_CO_TRY(const auto pieces, co_await file.stream_pieces(begin, bytes));
  uint64_t whole = 0;  // a piece after one that ends within a word could not be written
  for (const formats::StreamPiece& piece : pieces) {
    if (whole % 4 != 0) co_return false;
    whole += piece.bytes;
  }
  uint64_t done = 0;
  for (const formats::StreamPiece& piece : pieces) {
    DP_CO_CHECK(
        co_await device_.upload_stream(buffer, target + done, piece.stream, piece.offset, piece.bytes));
    done += piece.bytes;
  }
  co_return done != 0;
}

Task<Result<void>> WeightStream::fill(const Chunk& chunk) {
  formats::ByteSource& file = checkpoint_.file(chunk.tensor->file);
  const gpu::Buffer& staging = staging_[chunk.staging];
  const std::span<const uint8_t> mapped = file.mapped();
  if (!mapped.empty()) {
    DP_CO_CHECK(co_await file.ready(chunk.begin, chunk.bytes));
    DP_CO_CHECK(co_await device_.upload(staging, 0, mapped.subspan(chunk.begin, chunk.bytes)));
    DP_CO_CHECK(co_await file.ready(chunk.begin, chunk.bytes));
    file.done_with(chunk.begin, chunk.bytes);
    co_return Result<void>();
  }
  auto streaming = stream(staging, 0, file, chunk.begin, chunk.bytes);
  DP_CO_TRY(const bool streamed, co_await std::move(streaming));
  if (streamed) co_return Result<void>();
  DP_CO_TRY(const std::vector<uint8_t> held, co_await file.read(chunk.begin, chunk.bytes));
  co_return co_await device_.upload(staging, 0, held);
}

Task<Result<void>> WeightStream::run_tiles() {
  const auto is_mapped = [&](const Chunk& chunk) {
    return !checkpoint_.file(chunk.tensor->file).mapped().empty();
  };
  Task<Result<void>>
      next;  // what is not mapped comes late: it is asked for while the chunk before it is uploaded
  for (size_t i = 0; i < chunks_.size(); ++i) {
    for (size_t ahead = i == 0 ? 0 : kReadAhead; ahead <= kReadAhead && i + ahead < chunks_.size(); ++ahead) {
      const Chunk& later = chunks_[i + ahead];
      checkpoint_.file(later.tensor->file).will_read(later.begin, later.bytes);
    }
    Task<Result<void>> filling = std::move(next);
    if (!filling.valid()) filling = fill(chunks_[i]);
    if (i + 1 < chunks_.size() && !is_mapped(chunks_[i + 1])) {
      filling.start();
      next = fill(chunks_[i + 1]);
      next.start();
    }
    DP_CO_CHECK(co_await std::move(filling));
    const gpu::Work work{.plan = &built_.plans[chunks_[i].plan]};
    DP_CO_CHECK(device_.submit({&work, 1}));
    streamed_.repacked += chunks_[i].bytes;
    DP_CO_CHECK(note_read(chunks_[i].bytes));
  }
  co_return Result<void>();
}

Task<Result<void>> WeightStream::run() {
  if (device_.caps().uploads == gpu::UploadWay::kNone) co_return Result<void>();
  auto tiles = run_tiles();
  DP_CO_CHECK(co_await std::move(tiles));
  for (const Piece& piece : pieces_) {
    if (weight_format_info(piece.format).tiled) continue;
    auto rows = run_rows(piece);
    DP_CO_CHECK(co_await std::move(rows));
  }
  co_return Result<void>();
}

}  // namespace doppler::model
