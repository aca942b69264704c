// Dawn's compiled pipelines kept in a folder, one file a key, so that a second start compiles nothing.
#pragma once

#include <string>

#include "gpu/provider_native.h"

namespace doppler::gpu {

// `folder` is made if missing, and must outlive the device. What cannot be read or written is as if not
// there.
DawnCache make_dawn_cache(const std::string& folder);

}  // namespace doppler::gpu
