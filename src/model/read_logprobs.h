// Log-probabilities on their way to the host.
#pragma once

#include <cstring>
#include <vector>

#include "gpu/device.h"
#include "kernels/sample/sample.h"

namespace doppler::model {

// `count` entries out of a slot of the ring, once.
inline Task<Result<std::vector<kernels::LogProbEntry>>> read_logprobs(gpu::Device& device,
                                                                      const gpu::ReadbackRing& ring,
                                                                      uint32_t slot, uint32_t count) {
  std::vector<kernels::LogProbEntry> entries(count);
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device.read(ring, slot, entries.size() * sizeof(kernels::LogProbEntry)));
  std::memcpy(entries.data(), bytes.data(), bytes.size());
  co_return entries;
}

}  // namespace doppler::model
