// Writes a synthetic model to a file with several threads. Not part of the WebAssembly build.
#pragma once

#include <string>

#include "formats/synth/synthetic_model.h"

namespace doppler::formats {

// Through a temporary file beside it, renamed at the end: a failure leaves nothing behind.
Result<> write_synthetic(const SyntheticModel& model, const std::string& path);

}  // namespace doppler::formats
