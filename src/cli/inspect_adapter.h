// `doppler inspect` for adapters: it shows ranks, scales and changed matrices, and checks whether they fit a base
// model.
#pragma once

#include <string>

#include "base/result.h"

namespace doppler::cli {

// base: the model that the adapter must fit. Empty: no model.
Result<void> print_adapter(const std::string& path, const std::string& base, bool json);

}  // namespace doppler::cli
