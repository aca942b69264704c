// The public options and descriptions (doppler/doppler.h) in the engine's terms, shared by the native API and the
// WebAssembly exports.
#pragma once

#include "doppler/doppler.h"
#include "engine/loaded_model.h"

namespace doppler::engine {

// Errors: a lane or cache format that is not known.
Result<model::RunnerOptions> runner_options(const LoadOptions& options);
ModelInfo describe(const LoadedModel& loaded, const gpu::Device& device);
// Since the model was loaded.
Counters counters_since_load(const LoadedModel& loaded, const gpu::Device& device);

}  // namespace doppler::engine
