// WebAssembly has no lane persistent (model/device_model_persistent_web.cpp).
#include "kernels/persistent/layers.h"

namespace doppler::kernels {

std::span<const Variant<PersistentLayers>> decode_layers_variants() { return {}; }

}  // namespace doppler::kernels
