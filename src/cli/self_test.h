// The self test of a model on this machine's device (engine/self_test.h): made after a conversion, run by
// `doppler verify`.
#pragma once

#include <string>

#include "cli/common.h"
#include "engine/self_test.h"

namespace doppler::cli {

// The model that the flags name, loaded as a self test needs it: exact lane, short context, all logits.
Result<Model> load_for_self_test(ModelFlags flags);

// Makes a self test of the RDRR model in `folder` and adds it to its manifest. flags: device and provider.
Result<void> add_self_test(const std::string& folder, ModelFlags flags);

}  // namespace doppler::cli
