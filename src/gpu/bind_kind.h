// The kinds of a compute pipeline's bindings. The order of a kernel's bindings is generated from its WGSL
// (tools/embed_wgsl) as `kLayout`, so host and shader cannot disagree. Read next: pipeline.h.
#pragma once

#include <cstdint>

namespace doppler::gpu {

enum class BindKind : uint8_t {
  kUniform,    // var<uniform>
  kRead,       // var<storage, read>
  kReadWrite,  // var<storage, read_write>
};

}  // namespace doppler::gpu
