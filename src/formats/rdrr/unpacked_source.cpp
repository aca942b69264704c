#include "formats/rdrr/unpacked_source.h"

#include <algorithm>
#include <cstring>

#include "formats/quant/codec.h"

namespace doppler::formats {
namespace {

class UnpackedSource final : public ByteSource {
 public:
  UnpackedSource(ByteSource& shards, uint64_t position, const RdrrTensor& tensor)
      : shards_(shards),
        position_(position),
        layout_(tensor.layout),
        type_(dtype_info(tensor.type)),
        name_(shards.name() + ": " + printable(tensor.name)),
        k_(tensor.shape.empty() ? 1 : tensor.shape.back()),
        n_(tensor.shape.size() < 2 ? 1 : tensor.shape[tensor.shape.size() - 2]) {
    for (const uint64_t extent : tensor.shape) count_ *= extent;  // rdrr_tensor_bytes() saw that it fits
  }

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return count_ * sizeof(float); }

  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const uint64_t row_bytes = k_ * sizeof(float);
    const uint64_t first = offset / row_bytes, end = (offset + count + row_bytes - 1) / row_bytes;
    std::vector<float> rows(host_size((end - first) * k_));
    auto unpacking = layout_ == RdrrLayout::kFlat  ? unpack_flat(first, end, rows)
                     : layout_ == RdrrLayout::kRow ? unpack_rows(first, end, rows)
                                                   : unpack_columns(first, end, rows);
    if (auto done = co_await std::move(unpacking); !done) co_return forward(std::move(done).error());
    const auto* bytes = reinterpret_cast<const uint8_t*>(rows.data()) + (offset - first * row_bytes);
    co_return std::vector<uint8_t>(bytes, bytes + count);
  }

 private:
  // `blocks` blocks from number `first` on, unpacked.
  Task<Result<std::vector<float>>> unpack(uint64_t first, uint64_t blocks) {
    auto reading = shards_.read(position_ + first * type_.block_bytes, blocks * type_.block_bytes);
    DP_CO_TRY(const std::vector<uint8_t> bytes, co_await std::move(reading));
    std::vector<float> values(host_size(blocks * type_.block_size));
    DP_CO_CHECK(dequantise(type_.type, bytes.data(), values.data(), values.size()));
    co_return values;
  }
  uint64_t blocks_for(uint64_t count) const { return (count + type_.block_size - 1) / type_.block_size; }

  Task<Result<>> unpack_flat(uint64_t first, uint64_t end, std::vector<float>& rows) {
    const uint64_t begin = first * k_ / type_.block_size;
    auto unpacking = unpack(begin, blocks_for(end * k_) - begin);
    DP_CO_TRY(const std::vector<float> values, co_await std::move(unpacking));
    const auto from = values.begin() + static_cast<ptrdiff_t>(first * k_ - begin * type_.block_size);
    std::copy(from, from + static_cast<ptrdiff_t>(rows.size()), rows.begin());
    co_return Result<>();
  }

  Task<Result<>> unpack_rows(uint64_t first, uint64_t end, std::vector<float>& rows) {
    const uint64_t blocks = blocks_for(k_);
    auto unpacking = unpack(first * blocks, (end - first) * blocks);
    DP_CO_TRY(const std::vector<float> values, co_await std::move(unpacking));
    for (uint64_t row = 0; row < end - first; ++row) {
      const auto from = values.begin() + static_cast<ptrdiff_t>(row * blocks * type_.block_size);
      std::copy(from, from + static_cast<ptrdiff_t>(k_), rows.begin() + static_cast<ptrdiff_t>(row * k_));
    }
    co_return Result<>();
  }

  // Each matrix of n rows is stored as k columns; of each the blocks that cover the rows wanted are unpacked.
  Task<Result<>> unpack_columns(uint64_t first, uint64_t end, std::vector<float>& rows) {
    const uint64_t blocks = blocks_for(n_);
    for (uint64_t row = first; row < end;) {
      const uint64_t matrix = row / n_, from = row % n_, to = std::min(n_, from + end - row);
      const uint64_t first_block = from / type_.block_size;
      for (uint64_t column = 0; column < k_; ++column) {
        auto unpacking = unpack((matrix * k_ + column) * blocks + first_block, blocks_for(to) - first_block);
        DP_CO_TRY(const std::vector<float> values, co_await std::move(unpacking));
        for (uint64_t i = from; i < to; ++i) {
          rows[host_size((row - first + i - from) * k_ + column)] =
              values[host_size(i - first_block * type_.block_size)];
        }
      }
      row += to - from;
    }
    co_return Result<>();
  }

  ByteSource& shards_;
  const uint64_t position_;
  const RdrrLayout layout_;
  const DTypeInfo& type_;
  const std::string name_;
  const uint64_t k_, n_;
  uint64_t count_ = 1;
};

}  // namespace

bool is_row_major(const RdrrTensor& tensor) {
  const uint64_t k = tensor.shape.empty() ? 1 : tensor.shape.back();
  return tensor.layout != RdrrLayout::kColumn && k % dtype_info(tensor.type).block_size == 0;
}

std::unique_ptr<ByteSource> make_unpacked(ByteSource& shards, uint64_t position, const RdrrTensor& tensor) {
  return std::make_unique<UnpackedSource>(shards, position, tensor);
}

}  // namespace doppler::formats
