#include "formats/tower_padding.h"

#include <algorithm>

#include "formats/architectures/architecture.h"
#include "formats/architectures/tensor_names.h"
#include "formats/checkpoint_changes.h"

namespace doppler::formats {
namespace {

constexpr uint32_t kUnit = 64;

class PaddedRows final : public ByteSource {
 public:
  PaddedRows(ByteSource& file, uint64_t offset, uint64_t rows, uint64_t row_bytes, uint64_t padded_bytes)
      : file_(file), offset_(offset), rows_(rows), row_bytes_(row_bytes), padded_bytes_(padded_bytes) {}

  const std::string& name() const override { return file_.name(); }
  uint64_t size() const override { return rows_ * padded_bytes_; }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    std::vector<uint8_t> out(host_size(count), 0);
    if (count == 0) co_return out;
    const uint64_t first = offset / padded_bytes_, last = (offset + count - 1) / padded_bytes_;
    auto reading = file_.read(offset_ + first * row_bytes_, (last + 1 - first) * row_bytes_);
    DP_CO_TRY(const std::vector<uint8_t> given, co_await std::move(reading));
    for (uint64_t row = first; row <= last; ++row) {
      const uint64_t begin = std::max(offset, row * padded_bytes_);
      const uint64_t end = std::min(offset + count, row * padded_bytes_ + row_bytes_);
      if (begin >= end) continue;
      const auto from =
          given.begin() + static_cast<ptrdiff_t>((row - first) * row_bytes_ + begin - row * padded_bytes_);
      std::copy_n(from, end - begin, out.begin() + static_cast<ptrdiff_t>(begin - offset));
    }
    co_return out;
  }

 private:
  ByteSource& file_;
  const uint64_t offset_, rows_, row_bytes_, padded_bytes_;
};

// Makes the axis `axis` of a vector or a matrix as long as `padded`, if it is `dim` long.
void pad(Checkpoint& checkpoint, const std::string& name, size_t axis, uint32_t dim, uint32_t padded) {
  const TensorInfo* const tensor = checkpoint.find(name);
  if (!tensor || tensor->shape.size() <= axis || tensor->shape[axis] != dim) return;
  uint64_t rows = 1;  // runs of bytes that get zeros after them
  for (size_t i = 0; i < axis; ++i) rows *= tensor->shape[i];
  const uint64_t row_bytes = tensor->bytes / rows;
  if (rows == 0 || dim == 0 || row_bytes * padded % dim != 0) return;
  std::vector<uint64_t> shape = tensor->shape;
  shape[axis] = padded;
  put_source(
      checkpoint, name,
      padded_rows(checkpoint.file(tensor->file), tensor->offset, rows, row_bytes, row_bytes * padded / dim),
      std::move(shape));
}

}  // namespace

std::unique_ptr<ByteSource> padded_rows(ByteSource& file, uint64_t offset, uint64_t rows, uint64_t row_bytes,
                                        uint64_t padded_bytes) {
  return std::make_unique<PaddedRows>(file, offset, rows, row_bytes, padded_bytes);
}

uint32_t padded_feed_forward(uint32_t dim) { return (dim + kUnit - 1) / kUnit * kUnit; }

void pad_feed_forward(Checkpoint& checkpoint, const ModelConfig& tower) {
  const uint32_t dim = tower.ffn_dim, padded = padded_feed_forward(dim);
  if (padded == dim) return;
  for (const PlacedTensor& placed : tensors_of(tower)) {
    const TensorId id = placed.row->id;
    if (id == TensorId::kUp || id == TensorId::kGate) {
      for (const char* suffix : {".weight", ".bias"})
        pad(checkpoint, tensor_name(tower, id, placed.layer, suffix), 0, dim, padded);
    } else if (id == TensorId::kDown) {
      pad(checkpoint, tensor_name(tower, id, placed.layer), 1, dim, padded);
    }
  }
}

}  // namespace doppler::formats
