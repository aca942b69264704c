// usual_providers() of provider_native.h where tools/setup installs both.
#include "gpu/provider_native.h"

namespace doppler::gpu {

std::vector<std::string> usual_providers() { return {"dawn", "wgpu"}; }

}  // namespace doppler::gpu
