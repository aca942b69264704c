// Shows Dawn one Vulkan device of several (loader.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace doppler::gpu {

// The folder, with a slash at its end, of a Vulkan loader that shows the device at this place of
// list_vulkan_devices() to instances that this thread creates. Error: the file is not there.
Result<std::string> choose_vulkan_device(uint32_t place);

}  // namespace doppler::gpu
