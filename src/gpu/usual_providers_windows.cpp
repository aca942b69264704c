// usual_providers() of provider_native.h on Windows, where no wheel has a Dawn that exports webgpu.h.
#include "gpu/provider_native.h"

namespace doppler::gpu {

std::vector<std::string> usual_providers() { return {"wgpu"}; }

}  // namespace doppler::gpu
