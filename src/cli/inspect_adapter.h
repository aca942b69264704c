// `doppler inspect` of an adapter: its ranks, scales and what it changes, and whether it fits a base model.
#pragma once

#include <string>

#include "base/result.h"

namespace doppler::cli {

// base: a model that it must fit; empty: none.
Result<void> print_adapter(const std::string& path, const std::string& base, bool json);

}  // namespace doppler::cli
