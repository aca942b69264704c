// The load of a model, as a line and as JSON: `run`, `bench` and the JavaScript package say the same.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "doppler/doppler.h"

namespace doppler::engine {

// "load 0.92 s: weights 0.61 s (4.9 GB, 8.0 GB/s, ring, host copies 0.40 s), kernels 0.85 s (38, all from the cache)".
// The line names the bytes that the host had to lay out anew.
std::string load_line(const LoadReport& load);
// {"seconds", "weights_seconds", "copy_seconds", "pipelines_seconds", "bytes_per_second", "uploads", ...}
Json load_json(const LoadReport& load);

}  // namespace doppler::engine
