// One generation as the JSON object that `doppler run --json` prints and the JavaScript package returns.
#pragma once

#include "base/json_fwd.h"
#include "doppler/doppler.h"

namespace doppler::engine {

// {"text", "tokens", "stop", "model", "device", "timings", "load", "memory", "counters"}
Json generation_json(const ModelInfo& info, const Counters& counters, const Generation& generation);

}  // namespace doppler::engine
