// Dawn's compiled pipelines kept in a folder, one file a key, so that a second start compiles nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "gpu/provider_native.h"

namespace doppler::gpu {

struct BlobCache {
  std::string folder;  // made if missing
  // Threads that compile add to these too.
  std::atomic<uint64_t> found = 0, stored = 0;
};
// The cache must outlive the device. A blob that cannot be read or written is treated as if it were not there.
DawnCache make_dawn_cache(BlobCache& cache);

}  // namespace doppler::gpu
