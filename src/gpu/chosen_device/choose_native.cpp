#include "gpu/chosen_device/choose_native.h"

#include "base/file.h"
#include "base/own_folders_native.h"
#include "base/shared_library.h"

namespace doppler::gpu {

Result<std::string> choose_vulkan_device(uint32_t place) {
  constexpr const char* kFolder = "/doppler-chosen-device/";
  for (const std::string& beside :
       {program_folder() + "/../lib", own_folder(), std::string(DOPPLER_CHOSEN_DEVICE_DIR)}) {
    const std::string folder = beside + kFolder;
    const std::string path = folder + "libvulkan.so.1";
    std::string reason;
    const SharedLibrary library = is_there(path) ? SharedLibrary::open(path, reason) : SharedLibrary();
    void (*choose)(uint32_t) = nullptr;
    if (!library || !library.find("doppler_choose_device", choose)) continue;
    choose(place);
    return folder;
  }
  return fail(
      ErrorKind::kUnsupported,
      "The file lib%slibvulkan.so.1 of this installation is missing, which shows Dawn a device that is not "
      "the first.",
      kFolder);
}

}  // namespace doppler::gpu
