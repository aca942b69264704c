// WebAssembly has no lane persistent (model/device_model_persistent_web.cpp).
#include "lowering/rule_functions.h"

namespace doppler::lowering {

Result<Outcome> lower_persistent_layers(Lowering&, uint32_t) { return not_matched(); }

}  // namespace doppler::lowering
