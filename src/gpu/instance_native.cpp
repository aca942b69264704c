// Instances and adapters of both providers; see instance_native.h.
#include "gpu/instance_native.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "gpu/guards_native.h"

namespace doppler::gpu {

const char* const kDawnEnabledToggles[3] = {
    "allow_unsafe_apis",            // for subgroup matrices and timestamps
    "vulkan_enable_f16_on_nvidia",  // f16 works there; Dawn is careful about old drivers
    "disable_workgroup_init",       // our kernels initialise their workgroup memory (naga never does)
};

namespace {

WGPUInstance create_dawn_instance(const Provider& provider) {
  DawnToggles toggles = {.chain = {nullptr, kDawnTogglesSType},
                         .enabled_count = std::size(kDawnEnabledToggles),
                         .enabled = kDawnEnabledToggles,
                         .disabled_count = 0,
                         .disabled = nullptr};
  const WGPUInstanceFeatureName timed_wait = WGPUInstanceFeatureName_TimedWaitAny;
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &toggles.chain;
  descriptor.requiredFeatureCount = 1;
  descriptor.requiredFeatures = &timed_wait;
  return provider.CreateInstance(&descriptor);
}

// Vulkan only: with its default of all backends wgpu-native also opens OpenGL, which costs 80 ms.
WGPUInstance create_wgpu_instance(const Provider& provider) {
  WGPUInstanceExtras extras = {};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Vulkan;
  WGPUInstanceDescriptor descriptor = WGPU_INSTANCE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &extras.chain;
  return provider.CreateInstance(&descriptor);
}

bool is_device(const WGPUAdapterInfo& info, const VulkanDevice& device) {
  return info.vendorID == device.vendor_id && info.deviceID == device.device_id &&
         from_view(info.device) == device.name;
}

Result<NativeAdapter> request_wgpu_adapter(const Provider& provider, const VulkanDevice& device) {
  WGPUInstance instance = create_wgpu_instance(provider);
  if (!instance) return fail(ErrorKind::kDevice, "wgpu-native could not be started.");
  std::vector<WGPUAdapter> adapters(provider.InstanceEnumerateAdapters(instance, nullptr, nullptr));
  if (!adapters.empty()) provider.InstanceEnumerateAdapters(instance, nullptr, adapters.data());
  WGPUAdapter chosen = nullptr;
  uint32_t equal_before = 0;
  for (WGPUAdapter adapter : adapters) {
    WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
    provider.AdapterGetInfo(adapter, &info);
    const bool equal = is_device(info, device);
    provider.AdapterInfoFreeMembers(info);
    if (equal && equal_before++ == device.ordinal) {
      chosen = adapter;
    } else {
      provider.AdapterRelease(adapter);
    }
  }
  if (!chosen) {
    provider.InstanceRelease(instance);
    return fail(ErrorKind::kUnsupported, "wgpu-native does not offer \"%s\".", device.name.c_str());
  }
  return NativeAdapter(&provider, instance, chosen);
}

struct AdapterAnswer {
  bool done = false;
  WGPUAdapter adapter = nullptr;
  std::string message;
};

void on_adapter(WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView message, void* answer, void*) {
  auto* out = static_cast<AdapterAnswer*>(answer);
  out->adapter = adapter;
  out->message = from_view(message);
  out->done = true;
}

// The one adapter that Dawn gives; null (with the reason) if there is none or it is another device.
std::optional<NativeAdapter> try_dawn(const Provider& provider, const VulkanDevice& device,
                                      std::string& reason) {
  WGPUInstance instance = create_dawn_instance(provider);
  if (!instance) {
    reason = "it could not be started";
    return std::nullopt;
  }
  DawnToggles toggles = {.chain = {nullptr, kDawnTogglesSType},
                         .enabled_count = std::size(kDawnEnabledToggles),
                         .enabled = kDawnEnabledToggles,
                         .disabled_count = 0,
                         .disabled = nullptr};
  WGPURequestAdapterOptions options = WGPU_REQUEST_ADAPTER_OPTIONS_INIT;
  options.nextInChain = &toggles.chain;
  options.backendType = WGPUBackendType_Vulkan;
  options.powerPreference = WGPUPowerPreference_HighPerformance;
  AdapterAnswer answer;
  WGPURequestAdapterCallbackInfo callback = WGPU_REQUEST_ADAPTER_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_adapter;
  callback.userdata1 = &answer;
  wait_for(provider, instance, provider.InstanceRequestAdapter(instance, &options, callback), answer.done);
  if (!answer.adapter) {
    if (reason.empty()) reason = answer.message.empty() ? "it found no usable Vulkan device" : answer.message;
    provider.InstanceRelease(instance);
    return std::nullopt;
  }
  NativeAdapter adapter(&provider, instance, answer.adapter);
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  provider.AdapterGetInfo(answer.adapter, &info);
  const bool wanted = info.backendType == WGPUBackendType_Vulkan && is_device(info, device);
  if (!wanted) reason = "it offers \"" + from_view(info.device) + "\" instead";
  provider.AdapterInfoFreeMembers(info);
  if (!wanted) return std::nullopt;
  return adapter;
}

// Sets an environment variable for the lifetime of this object, in a process that is Doppler's own. The Vulkan loader
// has no other switch for what it shows to Dawn.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// Dawn gives one adapter per request, always its first. To get another, the loader must show less: first by
// Mesa's device selection layer, then driver by driver.
Result<NativeAdapter> request_dawn_adapter(const Provider& provider, const VulkanDevice& device) {
  if (device.ordinal > 0) {
    return fail(
        ErrorKind::kUnsupported,
        "Dawn cannot tell \"%s\" from the first device of the same name; wgpu-native can (--webgpu wgpu).",
        device.name.c_str());
  }
  std::string reason;
  if (auto adapter = try_dawn(provider, device, reason)) return std::move(*adapter);
  if (!owns_process()) {
    return fail(
        ErrorKind::kUnsupported,
        "Dawn does not offer \"%s\": %s. Set MESA_VK_DEVICE_SELECT=%x:%x! or VK_DRIVER_FILES before the "
        "program starts, or take wgpu-native.",
        device.name.c_str(), reason.c_str(), device.vendor_id, device.device_id);
  }
  {
    const ScopedVariable select("MESA_VK_DEVICE_SELECT",
                                format_text("%x:%x!", device.vendor_id, device.device_id));
    if (auto adapter = try_dawn(provider, device, reason)) return std::move(*adapter);
  }
  const std::vector<std::string> drivers = vulkan_driver_files();
  if (drivers.size() > 1) {
    for (const std::string& file : drivers) {
      const ScopedVariable only("VK_DRIVER_FILES", file);
      std::string ignored;
      if (auto adapter = try_dawn(provider, device, ignored)) return std::move(*adapter);
    }
  }
  return fail(ErrorKind::kUnsupported, "Dawn does not offer \"%s\": %s.", device.name.c_str(),
              reason.c_str());
}

}  // namespace

Result<NativeAdapter> request_adapter(const Provider& provider, const VulkanDevice& device) {
  const StderrCapture quiet;
  return provider.is_dawn ? request_dawn_adapter(provider, device) : request_wgpu_adapter(provider, device);
}

void wait_for(const Provider& provider, WGPUInstance instance, WGPUFuture future, const bool& done) {
  if (!provider.is_dawn) {
    if (!done) provider.InstanceProcessEvents(instance);  // wgpu-native has called back before it returned
    return;
  }
  WGPUFutureWaitInfo wait = {.future = future, .completed = 0};
  while (!done && provider.InstanceWaitAny(instance, 1, &wait, UINT64_MAX) == WGPUWaitStatus_Success) {
  }
}

NativeAdapter::NativeAdapter(NativeAdapter&& other) noexcept
    : provider_(other.provider_), instance_(other.instance_), adapter_(other.adapter_) {
  other.instance_ = nullptr;
  other.adapter_ = nullptr;
}

NativeAdapter::~NativeAdapter() {
  if (adapter_) provider_->AdapterRelease(adapter_);
  if (instance_) provider_->InstanceRelease(instance_);
}

WGPULimits NativeAdapter::limits() const {
  WGPULimits limits = WGPU_LIMITS_INIT;
  provider_->AdapterGetLimits(adapter_, &limits);
  return limits;
}

bool NativeAdapter::has_feature(WGPUFeatureName feature) const {
  WGPUSupportedFeatures features = {};
  provider_->AdapterGetFeatures(adapter_, &features);
  const bool found = std::find(features.features, features.features + features.featureCount, feature) !=
                     features.features + features.featureCount;
  provider_->SupportedFeaturesFreeMembers(features);
  return found;
}

}  // namespace doppler::gpu
