// GPU memory. A Buffer owns (moves, frees on destruction); a BufferSlice only names a range.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace doppler::gpu {

class Device;

enum class BufferUse : uint8_t {
  kStorage,   // read and written by kernels, copied to and from
  kUniform,   // parameters: written once, read by kernels
  kReadback,  // mapped for reading by the host; owned by ReadbackRing
};

struct BufferDesc {
  std::string name;  // seen in errors and memory reports: "blk.3.ffn_down.weight"
  uint64_t bytes = 0;
  BufferUse use = BufferUse::kStorage;
  // False: the caller writes every byte before anything reads it, so that clearing is saved.
  bool zeroed = true;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, uint32_t id, uint64_t bytes) : device_(device), id_(id), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  bool valid() const { return device_ != nullptr; }
  uint32_t id() const { return id_; }  // index in the device's buffer table; plans name buffers by it
  uint64_t bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
  }
  Device* device_ = nullptr;
  uint32_t id_ = 0;
  uint64_t bytes_ = 0;
};

struct BufferSlice {
  uint32_t buffer = 0;  // Buffer::id()
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

}  // namespace doppler::gpu
