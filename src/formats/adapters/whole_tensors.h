// Adapters that were trained with whole modules (modules_to_save, norms). Their tensors take the place of the model's
// when it is loaded, for all who use it.
#pragma once

#include "formats/adapters/fit_adapter.h"

namespace doppler::formats {

// Call this before the model is loaded. It moves the numbers out; the adapter still says which tensors it replaces.
void put_whole_tensors(FittedAdapter& adapter, Checkpoint& checkpoint);

}  // namespace doppler::formats
