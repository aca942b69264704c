// Asks the Vulkan loader, opened at run time; see vulkan_devices_native.h.
#include "gpu/vulkan_devices_native.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/process.h"
#include "base/shared_library.h"
#include "gpu/guards_native.h"

namespace doppler::gpu {
namespace {

struct Loader {
  PFN_vkGetInstanceProcAddr get = nullptr;
  VkInstance instance = nullptr;

  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(get(instance, name));
  }
};

AdapterType to_type(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return AdapterType::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return AdapterType::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return AdapterType::kCpu;
    default:
      return AdapterType::kUnknown;
  }
}

uint64_t largest_local_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) largest = std::max<uint64_t>(largest, heap.size);
  }
  return largest;
}

bool has_extension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::ranges::any_of(
      extensions, [&](const auto& extension) { return std::strcmp(extension.extensionName, name) == 0; });
}

std::vector<VkExtensionProperties> extensions_of(const Loader& loader, VkPhysicalDevice device) {
  const auto enumerate =
      loader.find<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
  uint32_t count = 0;
  enumerate(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  enumerate(device, nullptr, &count, extensions.data());
  extensions.resize(count);
  return extensions;
}

// Each vendor has an extension of its own for it; Intel has none.
uint32_t compute_units(const Loader& loader, VkPhysicalDevice device, uint32_t api_version) {
  const auto get = loader.find<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2");
  if (!get || api_version < VK_API_VERSION_1_1) return 0;
  const std::vector<VkExtensionProperties> extensions = extensions_of(loader, device);
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  const auto ask = [&](auto& wanted) {
    properties.pNext = &wanted;
    get(device, &properties);
  };
  if (has_extension(extensions, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV told = {};
    told.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
    ask(told);
    return told.shaderSMCount;
  }
  if (has_extension(extensions, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderCoreProperties2AMD told = {};
    told.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD;
    ask(told);
    return told.activeComputeUnitCount;
  }
  if (has_extension(extensions, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME)) {
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM told = {};
    told.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM;
    ask(told);
    return told.shaderCoreCount;
  }
  return 0;
}

VulkanDevice describe_device(const Loader& loader, VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties = {};
  loader.find<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(device, &properties);
  VkPhysicalDeviceMemoryProperties memory = {};
  loader.find<PFN_vkGetPhysicalDeviceMemoryProperties>("vkGetPhysicalDeviceMemoryProperties")(device,
                                                                                              &memory);
  return {.name = properties.deviceName,
          .vendor_id = properties.vendorID,
          .device_id = properties.deviceID,
          .type = to_type(properties.deviceType),
          // A CPU driver reports only its own guess (old lavapipe: always 2 GiB).
          .memory_bytes = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? machine_memory_bytes()
                                                                               : largest_local_heap(memory),
          .compute_units = compute_units(loader, device, properties.apiVersion)};
}

// By its name on Linux, Windows and macOS.
SharedLibrary open_vulkan_loader(std::string& reason) {
  SharedLibrary library;
  for (const char* name : {"libvulkan.so.1", "vulkan-1.dll", "libvulkan.1.dylib", "libMoltenVK.dylib"}) {
    if (!library) library = SharedLibrary::open(name, reason);
  }
  return library;
}

}  // namespace

Result<std::vector<VulkanDevice>> list_vulkan_devices() {
  std::string reason;
  const SharedLibrary library = open_vulkan_loader(reason);
  Loader loader;
  if (!library || !library.find("vkGetInstanceProcAddr", loader.get)) {
    return fail(
        ErrorKind::kDevice,
        "There is no Vulkan loader (libvulkan.so.1) on this machine. Install it (Debian and Ubuntu: apt "
        "install libvulkan1 mesa-vulkan-drivers).");
  }
  const StderrCapture quiet;  // drivers print warnings when they are probed
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pNext = nullptr,
                                         .pApplicationName = "doppler",
                                         .applicationVersion = 0,
                                         .pEngineName = nullptr,
                                         .engineVersion = 0,
                                         .apiVersion = VK_API_VERSION_1_1};
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  const auto create = loader.find<PFN_vkCreateInstance>("vkCreateInstance");
  std::vector<VulkanDevice> devices;
  if (create && create(&info, nullptr, &loader.instance) == VK_SUCCESS) {
    const auto enumerate = loader.find<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
    uint32_t count = 0;
    enumerate(loader.instance, &count, nullptr);
    std::vector<VkPhysicalDevice> handles(count);
    enumerate(loader.instance, &count, handles.data());
    for (uint32_t i = 0; i < count; ++i) {
      VulkanDevice device = describe_device(loader, handles[i]);
      device.place = i;
      for (const VulkanDevice& other : devices) {
        const bool same = other.name == device.name && other.vendor_id == device.vendor_id &&
                          other.device_id == device.device_id;
        device.ordinal += same ? 1 : 0;
      }
      devices.push_back(std::move(device));
    }
    loader.find<PFN_vkDestroyInstance>("vkDestroyInstance")(loader.instance, nullptr);
  }
  if (devices.empty()) {
    return fail(
        ErrorKind::kDevice,
        "Vulkan finds no device on this machine, neither a GPU nor a CPU driver. Install a driver (Debian "
        "and Ubuntu: apt install mesa-vulkan-drivers) or check VK_DRIVER_FILES.");
  }
  return devices;
}

}  // namespace doppler::gpu
