// The Vulkan devices of this machine, asked of the Vulkan loader itself: cheaper than opening a WebGPU
// provider to see whether a GPU is there, and the only place that tells memory sizes for both providers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/caps.h"

namespace doppler::gpu {

struct VulkanDevice {
  std::string name;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  AdapterType type = AdapterType::kUnknown;
  uint64_t memory_bytes = 0;   // of the largest device-local heap; a CPU device has the machine's memory
  uint32_t compute_units = 0;  // by extensions of NVIDIA, AMD and ARM; 0: the driver has no such extension
  uint32_t ordinal = 0;        // among devices of the same name and ids, which cannot be told apart otherwise
  uint32_t place = 0;          // in the loader's list
};

// In the loader's order, which is that of `place`. Errors: no Vulkan loader, or it finds no driver; the sentence says
// what to install.
Result<std::vector<VulkanDevice>> list_vulkan_devices();

}  // namespace doppler::gpu
