// The bytes of weights on their way to the GPU: from the mapped file, or the host's stream, they come unchanged into a
// staging buffer, and from there by a kernel to the layout that the kernels read (kernels/repack). Bytes that lie in
// the file as the GPU wants them go straight to their place. The host still rearranges only row layouts that differ
// from the file (gpu.md, Loading); load reports name this.
// Read next: weight_loader.h, which decides what goes where.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "kernels/context.h"

namespace doppler::model {

// bytes of the checkpoint uploaded so far, of all that will be.
// Returns false to stop.
using UploadProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Bytes of the file by who laid them out.
struct StreamedBytes {
  uint64_t repacked = 0;    // the GPU
  uint64_t copied = 0;      // nobody: they were right
  uint64_t rearranged = 0;  // the host
  uint64_t total() const { return repacked + copied + rearranged; }
};

class WeightStream {
 public:
  WeightStream(gpu::Device& device, const formats::Checkpoint& checkpoint, UploadProgress progress);

  // Rows [first, first + rows) of a tensor to rows target_row.. of a piece; of a tile format to whole tiles.
  struct Span {
    const formats::TensorInfo* tensor = nullptr;
    uint64_t first = 0, rows = 0, target_row = 0;
  };
  // A range of a buffer, whole bindings from `offset` on, and all rows that it will hold.
  struct Piece {
    const gpu::Buffer* buffer = nullptr;  // not moved until run() is done
    uint64_t offset = 0;
    WeightFormat format{};
    uint64_t rows = 0;
    uint32_t k = 0;
    std::string name;
    std::vector<Span> spans;
  };
  // Touches no weight.
  void add(Piece piece) { pieces_.push_back(std::move(piece)); }
  // Bytes that somebody else read.
  Result<void> note_read(uint64_t bytes);  // error: the user asked to stop

  // After the last add(): makes the staging buffers and the plans of the repacking.
  Task<Result<void>> prepare();
  // Then: moves everything. Other work of the device may go on meanwhile, but no other upload. A device that keeps no
  // uploads (UploadWay::kNone) gets nothing.
  Task<Result<void>> run();
  const StreamedBytes& streamed() const { return streamed_; }

 private:
  // Some tiles: at most a staging buffer of the file's bytes.
  struct Chunk {
    const formats::TensorInfo* tensor;
    uint64_t begin, bytes;  // in the file
    size_t plan, staging;
  };
  Task<Result<void>> run_tiles();
  Task<Result<void>> fill(const Chunk& chunk);
  Task<Result<void>> run_rows(const Piece& piece);
  Task<Result<void>> copy_rows(const Piece& piece, const Span& span, const WeightLayout& layout,
                               bool& copied);
  Task<Result<void>> rearrange_rows(const Piece& piece, const Span& span, const WeightLayout& layout,
                                    std::vector<uint8_t>& plane1);
  Task<Result<bool>> stream(const gpu::Buffer& buffer, uint64_t target, formats::ByteSource& file,
                            uint64_t begin, uint64_t bytes);
  Result<void> record_chunks(const Piece& piece, kernels::Context& ctx);
  // All dimensions but the last are rows.
  uint64_t row_bytes(const Span& span) const;

  gpu::Device& device_;
  const formats::Checkpoint& checkpoint_;
  UploadProgress progress_;
  uint64_t total_bytes_ = 0, read_bytes_ = 0;
  StreamedBytes streamed_;
  std::vector<Piece> pieces_;
  gpu::PlanBuilder builder_;
  std::vector<gpu::Buffer> staging_;
  std::vector<kernels::TensorView> staging_views_;
  std::vector<Chunk> chunks_;
  gpu::BuiltPlans built_;
};

}  // namespace doppler::model
