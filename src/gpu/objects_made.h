// The number of objects that a device has made, to tell how many a piece of work made.
#pragma once

#include <cstdint>

#include "gpu/device.h"

namespace doppler::gpu {

// Buffers, bind groups and pipelines since the device was opened.
inline uint64_t objects_made(const Counters& made) {
  return made.buffers_created + made.bind_groups_created + made.pipelines_created;
}

}  // namespace doppler::gpu
