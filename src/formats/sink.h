// Where written bytes go, in order: a file (file_sink_native.h), memory, or nothing but a count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace doppler::formats {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<> write(std::span<const uint8_t> bytes) = 0;
};

class MemorySink final : public ByteSink {
 public:
  Result<> write(std::span<const uint8_t> bytes) override {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return {};
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace doppler::formats
