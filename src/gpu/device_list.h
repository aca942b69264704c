// Several devices for one program, as a user names them. Native only. Read next: open_native.cpp.
#pragma once

#include <string>
#include <vector>

#include "gpu/device.h"

namespace doppler::gpu {

// True if DeviceOptions::adapter may mean several devices: "all", or numbers with commas between them.
bool names_several(const std::string& adapter);
// Options for each device that these mean. "all" means every device of the best kind that one provider can use. Error:
// there is none.
Result<std::vector<DeviceOptions>> each_device(DeviceOptions options);

}  // namespace doppler::gpu
