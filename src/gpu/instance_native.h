// A provider's instance and one of its adapters: the choice of the adapter, its abilities, and the request for a
// device. The rules for choosing (default, by index, by name) are in open_native.cpp.
#pragma once

#include <string>
#include <vector>

#include "gpu/caps.h"
#include "gpu/provider_native.h"
#include "gpu/vulkan_devices_native.h"

namespace doppler::gpu {

// Owns the two handles. Moves.
class NativeAdapter {
 public:
  NativeAdapter(const Provider* provider, WGPUInstance instance, WGPUAdapter adapter)
      : provider_(provider), instance_(instance), adapter_(adapter) {}
  NativeAdapter(NativeAdapter&& other) noexcept;
  NativeAdapter& operator=(NativeAdapter&&) = delete;
  ~NativeAdapter();

  const Provider& provider() const { return *provider_; }
  WGPUInstance instance() const { return instance_; }
  WGPUAdapter handle() const { return adapter_; }
  // The adapter's abilities. Subgroup sizes may be 0 (the driver does not tell), and dp4a is unknown before a device
  // exists.
  Caps read_caps(const VulkanDevice& device) const;
  WGPULimits limits() const;
  bool has_feature(WGPUFeatureName feature) const;

 private:
  const Provider* provider_;
  WGPUInstance instance_;
  WGPUAdapter adapter_;
};

// The provider's adapter for this Vulkan device. Errors say why the provider does not offer it.
Result<NativeAdapter> request_adapter(const Provider& provider, const VulkanDevice& device);

// Lets the provider run callbacks until `done` is set. Only the requests at opening use it.
void wait_for(const Provider& provider, WGPUInstance instance, WGPUFuture future, const bool& done);

extern const char* const kDawnEnabledToggles[3];

}  // namespace doppler::gpu
