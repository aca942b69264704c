// Instances and adapters of both providers; see instance_native.h.
#include "gpu/instance_native.h"

#include <algorithm>
#include <optional>

#include "gpu/chosen_device/choose_native.h"
#include "gpu/guards_native.h"

namespace doppler::gpu {

const char* const kDawnEnabledToggles[3] = {
    "allow_unsafe_apis",            // for subgroup matrices and timestamps
    "vulkan_enable_f16_on_nvidia",  // f16 works there; Dawn is careful about old drivers
    "disable_workgroup_init",       // our kernels initialise their workgroup memory (naga never does)
};

namespace {

// `loader`: the folder of the Vulkan loader that it uses; empty: the system's.
WGPUInstance create_dawn_instance(const Provider& provider, const std::string& loader) {
  const WGPUStringView folder = to_view(loader);
  DawnInstance paths = {.chain = {nullptr, kDawnInstanceSType},
                        .paths = &folder,
                        .path_count = 1,
                        .platform = nullptr,
                        .backend_validation = 2,
                        .begin_capture = 0,
                        .others = {}};
  DawnToggles toggles = {.chain = {loader.empty() ? nullptr : &paths.chain, kDawnTogglesSType},
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
                                      const std::string& loader, std::string& reason) {
  WGPUInstance instance = create_dawn_instance(provider, loader);
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

// Dawn gives one adapter per request, always the first of the Vulkan loader's list. Another one is shown to it by a
// loader of ours.
Result<NativeAdapter> request_dawn_adapter(const Provider& provider, const VulkanDevice& device) {
  std::string reason;
  if (device.ordinal == 0) {
    if (auto adapter = try_dawn(provider, device, {}, reason)) return std::move(*adapter);
  }
  DP_TRY(const std::string loader, choose_vulkan_device(device.place));
  if (auto adapter = try_dawn(provider, device, loader, reason)) return std::move(*adapter);
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
