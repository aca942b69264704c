// Adapters that were trained with whole modules (modules_to_save, norms): these take the place of the model's tensors
// while it is loaded, for everybody who uses it.
#pragma once

#include "formats/adapters/fit_adapter.h"

namespace doppler::formats {

// Before the model is loaded. The numbers are moved out; the adapter still says which tensors it replaces.
void put_whole_tensors(FittedAdapter& adapter, Checkpoint& checkpoint);

}  // namespace doppler::formats
