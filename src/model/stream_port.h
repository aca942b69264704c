// The ends of a part of a model whose layers lie on several devices: the rows of the residual stream that it begins
// with, and those that it ends with. They go from one device to the next by way of the host. Who carries them:
// split_sequence_native.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"

namespace doppler::model {

// The f32 rows that a part begins with. They are put there before the step's submit.
class StreamIn {
 public:
  StreamIn() = default;
  explicit StreamIn(const gpu::Buffer* rows) : rows_(rows) {}
  Task<Result<void>> put(gpu::Device& device, std::span<const uint8_t> bytes) const {
    // Beyond this, memory that stays mapped is faster than the queue's own write: 1.1 and 6.9 ms for 8 MiB, 190 and
    // 267 us for 1 MiB (two H200, Dawn, 2026-11-28).
    constexpr size_t kSmall = 256u << 10;
    if (bytes.size() <= kSmall) co_return device.write(*rows_, 0, bytes);
    auto uploading = device.upload(*rows_, 0, bytes);
    co_return co_await std::move(uploading);
  }

 private:
  const gpu::Buffer* rows_ = nullptr;
};

// The rows that it ends with, as many as the step has. The step's submit copies them to the host's side.
class StreamOut {
 public:
  StreamOut() = default;
  StreamOut(const gpu::Buffer* rows, gpu::ReadbackRing ring, uint64_t row_bytes)
      : rows_(rows), ring_(std::move(ring)), row_bytes_(row_bytes) {}
  bool valid() const { return rows_ != nullptr; }
  gpu::ReadbackRequest request(uint32_t slot, uint32_t rows) const {
    return {.ring = &ring_,
            .slot = slot,
            .from = {.buffer = rows_->id(), .offset = 0, .bytes = rows * row_bytes_}};
  }
  Task<Result<std::vector<uint8_t>>> take(gpu::Device& device, uint32_t slot, uint32_t rows) const {
    return device.read(ring_, slot, rows * row_bytes_);
  }

 private:
  const gpu::Buffer* rows_ = nullptr;
  gpu::ReadbackRing ring_;
  uint64_t row_bytes_ = 0;
};

}  // namespace doppler::model
