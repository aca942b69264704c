// A Vulkan loader in front of the system's that shows one device: the file libvulkan.so.1 that Dawn is told to open
// (instance_native.cpp). Dawn's C API gives the first device that the loader lists and no other, so that this is how
// it opens a second GPU. It changes nothing for other users of Vulkan in the process: only Dawn knows its path.
// Dawn finds all functions through vkGetInstanceProcAddr, the one that is exported beside the choice.
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <vulkan/vulkan_core.h>

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace {

// The instances that this thread creates show the device at this place of the system loader's list.
thread_local uint32_t chosen = 0;

std::mutex mutex;
std::map<VkInstance, uint32_t> chosen_of;  // under it

PFN_vkGetInstanceProcAddr system_functions() {
  static const PFN_vkGetInstanceProcAddr found = [] {
    PFN_vkGetInstanceProcAddr get = nullptr;
    void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    void* const address = library ? dlsym(library, "vkGetInstanceProcAddr") : nullptr;
    std::memcpy(&get, &address, sizeof get);
    return get;
  }();
  return found;
}

template <class F>
F system_function(VkInstance instance, const char* name) {
  return reinterpret_cast<F>(system_functions()(instance, name));
}

VkResult create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* memory,
                         VkInstance* instance) {
  const VkResult made =
      system_function<PFN_vkCreateInstance>(nullptr, "vkCreateInstance")(info, memory, instance);
  if (made != VK_SUCCESS) return made;
  const std::lock_guard lock(mutex);
  chosen_of[*instance] = chosen;
  return made;
}

void destroy_instance(VkInstance instance, const VkAllocationCallbacks* memory) {
  system_function<PFN_vkDestroyInstance>(instance, "vkDestroyInstance")(instance, memory);
  const std::lock_guard lock(mutex);
  chosen_of.erase(instance);
}

VkResult enumerate_devices(VkInstance instance, uint32_t* count, VkPhysicalDevice* devices) {
  const auto enumerate =
      system_function<PFN_vkEnumeratePhysicalDevices>(instance, "vkEnumeratePhysicalDevices");
  uint32_t there = 0;
  if (const VkResult asked = enumerate(instance, &there, nullptr); asked != VK_SUCCESS) return asked;
  std::vector<VkPhysicalDevice> all(there);
  if (const VkResult asked = enumerate(instance, &there, all.data()); asked < VK_SUCCESS) return asked;
  uint32_t wanted = 0;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = chosen_of.find(instance); found != chosen_of.end()) wanted = found->second;
  }
  const uint32_t room = *count;
  *count = wanted < there ? 1 : 0;
  if (!devices || *count == 0) return VK_SUCCESS;
  if (room == 0) {
    *count = 0;
    return VK_INCOMPLETE;
  }
  devices[0] = all[wanted];
  return VK_SUCCESS;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void doppler_choose_device(uint32_t place) { chosen = place; }

[[gnu::visibility("default")]] PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance,
                                                                        const char* name) {
  if (!system_functions()) return nullptr;
  if (std::strcmp(name, "vkCreateInstance") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(create_instance);
  if (std::strcmp(name, "vkDestroyInstance") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(destroy_instance);
  if (std::strcmp(name, "vkEnumeratePhysicalDevices") == 0)
    return reinterpret_cast<PFN_vkVoidFunction>(enumerate_devices);
  return system_functions()(instance, name);
}

}  // extern "C"
