// Decides which scratch tensors share memory. A tensor lives, in each plan, from its first to its last use; two whose
// lives meet in any plan (or that one command uses) never share a buffer. Sharing is by whole buffers: WebGPU forbids
// binding one buffer both read-only and writable, so packing tensors side by side would break kernels.
#pragma once

#include <cstdint>
#include <vector>

namespace doppler::gpu {

struct Lifetime {
  uint32_t plan = 0;
  uint32_t first = 0;  // command numbers, both inclusive
  uint32_t last = 0;
};

struct ScratchTensor {
  uint64_t bytes = 0;
  std::vector<Lifetime> lives;  // at most one a plan; empty: never used
};

struct ScratchPlacement {
  std::vector<uint32_t> physical;  // of each tensor: index in sizes, or UINT32_MAX if it is never used
  std::vector<uint64_t> sizes;     // bytes of each buffer
};

ScratchPlacement place_scratch(const std::vector<ScratchTensor>& tensors);

}  // namespace doppler::gpu
