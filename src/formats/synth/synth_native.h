// Writes a synthetic model to a file with several threads. Not part of the WebAssembly build.
#pragma once

#include <functional>
#include <string>

#include "formats/synth/synthetic_model.h"

namespace doppler::formats {

// Bytes handed out to the threads so far; called on the calling thread.
using SynthProgress = std::function<void(uint64_t done, uint64_t total)>;

// Writes a temporary file beside `path` and renames it at the end, so that a failure leaves no file.
Result<> write_synthetic(const SyntheticModel& model, const std::string& path,
                         const SynthProgress& progress = {});

}  // namespace doppler::formats
