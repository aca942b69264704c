// WebAssembly has no lane persistent (model/plan_runner_persistent_web.cpp).
#include "kernels/persistent/layers.h"

namespace doppler::kernels {

std::span<const Variant<PersistentLayers>> decode_layers_variants() { return {}; }

}  // namespace doppler::kernels
